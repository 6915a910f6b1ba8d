"""Cells on disk: their results and records, and whether they are still current."""
