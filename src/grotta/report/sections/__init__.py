"""The sections of a report, made from finished cells."""
