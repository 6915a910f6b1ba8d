"""Cells on disk: written, read back, and checked for freshness."""
