"""One module per command; :mod:`grotta.cli` puts them together."""
