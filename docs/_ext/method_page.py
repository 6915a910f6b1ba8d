"""The directives ``method-step``, ``method-facts`` and ``method-table`` of the pages about methods."""

from collections.abc import Callable
from typing import Any, ClassVar

import method_facts
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

import grotta
from grotta.methods import method_class

FIRST = ("grotta+", "grotta")  # in the overview; the others follow as in tables of results


class _Generated(Directive):
    """Markdown in the place of the directive."""

    def markdown(self) -> str:
        """What stands there."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Read it as a part of the page."""
        box = nodes.container()
        lines = StringList(self.markdown().splitlines(), source="generated")
        self.state.nested_parse(lines, self.content_offset, box)
        return list(box.children)


class Step(_Generated):
    """The step of a method, from its docstring."""

    required_arguments = 1

    def markdown(self) -> str:
        return method_facts.step(method_class(self.arguments[0]))


class Facts(_Generated):
    """Facts, options and presets of a method."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {"hide": str.split}

    def markdown(self) -> str:
        cls = method_class(self.arguments[0])
        options = method_facts.options(cls, self.options.get("hide", ()))
        parts = (method_facts.facts(cls), "**Options**", options, "**Presets**", method_facts.presets(cls))
        return "\n\n".join(parts)


class Overview(_Generated):
    """All methods, one row each, with links to their pages."""

    def run(self) -> list[nodes.Node]:
        found = super().run()
        for table in found:
            table["classes"].append("methods")  # site.css knows it
        return found

    def markdown(self) -> str:
        names = sorted(grotta.list_methods(), key=lambda name: method_class(name).place)
        names.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
        rows = ["| method | name | cost | in one sentence |", "|---|---|---:|---|"]
        for cls in map(method_class, names):
            sentence = method_facts.step(cls).split("\n\n")[0].replace("\n", " ")
            page = cls.name.replace("+", "-plus")
            rows.append(f"| [{cls.title}]({page}.md) | `{cls.name}` | {cls.cost:g} | {sentence} |")
        return "\n".join(rows)


def setup(app: Any) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("method-step", Step)
    app.add_directive("method-facts", Facts)
    app.add_directive("method-table", Overview)
    return {"parallel_read_safe": True}
