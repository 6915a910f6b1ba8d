"""Cells on a Ray cluster: the driver hands them out, the nodes run them."""
