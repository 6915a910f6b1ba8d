"""``python -m grotta`` is the command line."""

from grotta.cli import main

main()
