"""One module a command; :mod:`grotta.cli` puts them together."""
