"""Renderers: HTML, Markdown, CSV, SVG and the terminal."""
