"""What is shown: tables and figures as values, renderers, sections and the live board."""
