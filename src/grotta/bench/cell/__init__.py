"""One cell: what it runs on, its loop, its records, its checkpoint."""
