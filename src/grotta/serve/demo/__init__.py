"""Simulated cameras for ``grotta demo``."""
