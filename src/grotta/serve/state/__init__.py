"""Streams on disk, and which server may use them."""
