"""Streams in memory: one answers, one learns, and both go to disk and come back."""
