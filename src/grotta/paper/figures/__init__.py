"""The paper's figures: one recipe per file."""
