"""What a method's page says that the class knows already: the step, cost, options and presets, as Markdown."""

import inspect
import re
from collections.abc import Collection, Iterator

from grotta.methods import Adapter

_ENTRY = re.compile(r"^ {4}(\*{0,2}\w[\w, ]*): (.*)$")


def step(cls: type[Adapter]) -> str:
    """The class docstring without its options and examples."""
    lines = inspect.getdoc(cls).splitlines()  # type: ignore[union-attr]
    ends = [i for i, line in enumerate(lines) if line.startswith(("Args:", ">>>"))]
    return in_markdown("\n".join(lines[: min(ends, default=len(lines))]).strip())


def facts(cls: type[Adapter]) -> str:
    """Two columns: how to make one, what it costs, what it does to the model."""
    rows = {
        "create": f'`grotta.create("{cls.name}", model)`',
        "class": f"`grotta.methods.{cls.__name__}`",
        "cost of a step": f"about {cls.cost:g} forward passes of the source model",
        "strong views": "yes: images must be large enough for them" if cls.augments else "no",
    }
    if cls.reconstruction:
        rows["reconstruction"] = "yes: no code of the authors is public"
    return _table(("", ""), [(f"**{name}**", value) for name, value in rows.items()])


def options(cls: type[Adapter], hidden: Collection[str] = ()) -> str:
    """The method's own options with their defaults and meanings."""
    meanings = dict(_meanings(Adapter)) | {k: v for c in reversed(_line(cls)) for k, v in _meanings(c)}
    rows = [
        (f"`{name}`", f"`{default!r}`", meanings[name])
        for name, default in _defaults(cls).items()
        if name not in hidden
    ]
    return _table(("option", "default", "meaning"), rows) if rows else "It has no options of its own."


def presets(cls: type[Adapter]) -> str:
    """The presets and what each of them sets."""
    rows = [
        (f"`{name}`", ", ".join(f"`{key}={value!r}`" for key, value in preset.items()) or "the defaults above")
        for name, preset in cls.presets.items()
    ]
    return _table(("preset", "sets"), rows)


def in_markdown(text: str) -> str:
    """A docstring's roles and double backticks as Markdown.

    >>> in_markdown("see :class:`grotta.methods.EATA` and ``beta``")
    'see `EATA` and `beta`'
    """
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


def _line(cls: type[Adapter]) -> list[type[Adapter]]:
    return [c for c in cls.__mro__ if issubclass(c, Adapter) and c is not Adapter]


def _defaults(cls: type[Adapter]) -> dict[str, object]:
    found: dict[str, object] = {}
    for c in _line(cls):
        for name, parameter in inspect.signature(c.__init__).parameters.items():
            if parameter.kind is parameter.KEYWORD_ONLY:
                found.setdefault(name, parameter.default)
    return found


def _meanings(cls: type[Adapter]) -> Iterator[tuple[str, str]]:
    """Names and meanings in ``Args:`` or ``Options ...:`` of the docstring; ``a, b: ...`` means both."""
    names: list[str] = []
    text = ""
    inside = False
    for line in [*(inspect.getdoc(cls) or "").splitlines(), "end"]:
        if inside and (entry := _ENTRY.match(line)):
            yield from ((name, text) for name in names)
            names, text = [name.strip() for name in entry[1].split(",")], in_markdown(entry[2])
        elif inside and line.startswith("        "):
            text += " " + in_markdown(line.strip())
        else:
            yield from ((name, text) for name in names)
            names = []
            inside = line.startswith(("Args:", "Options that every"))


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
