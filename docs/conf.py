"""How the documentation site is built: ``make docs``."""

import inspect
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

from sphinx.util.inspect import stringify_signature  # noqa: E402

from grotta._version import __version__  # noqa: E402
from grotta.methods import Adapter  # noqa: E402

project, author, copyright = "grotta", "The grotta authors", "The grotta authors"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "method_page"]
exclude_patterns = ["_build", "_ext"]

myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_custom_sections = [("Options that every method takes", "params_style")]
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"grotta {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
# Nothing is loaded from elsewhere: the theme's fonts are the reader's own.


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Bars in docstrings are absolute values, not reStructuredText's substitutions."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[i] = "``".join(parts)


def options_of_adapters(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """What a method takes is in ``__init__``; ``__new__``, which Sphinx would show, takes anything."""
    if what != "class" or not issubclass(obj, Adapter):
        return None
    _self, *parameters = inspect.signature(obj.__init__).parameters.values()
    return stringify_signature(inspect.Signature(parameters), unqualified_typehints=True), returns


def setup(app: Any) -> None:
    """Tell Sphinx."""
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-signature", options_of_adapters)
