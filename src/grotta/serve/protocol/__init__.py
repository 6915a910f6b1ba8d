"""The Open Inference Protocol v2, from bytes to images and from probabilities to bytes: pure functions."""
