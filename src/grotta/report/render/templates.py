"""The templates of pages and figures, in ``assets/``."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("grotta.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def template(name: str) -> Template:
    """The template of that name; what is put into it is escaped."""
    return _environment().get_template(name)


def asset(name: str) -> str:
    """A file of ``assets/`` as it is."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
