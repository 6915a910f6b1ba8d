"""What is compared: one recipe per table or figure of the paper, and its printed numbers."""
