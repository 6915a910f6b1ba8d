"""More for grotta."""
