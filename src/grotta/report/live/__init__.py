"""What is shown while cells run."""
