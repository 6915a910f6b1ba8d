"""Reading the printed numbers that a recipe brings: a JSON file beside it, exactly as printed.

A file has ``tables``, each with the fields of :class:`grotta.report.printed.PrintedTable`; known slips are listed in
the table's ``slips``, never corrected. It may also have ``networks`` and ``data``: what was used, by data set.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grotta.report.printed import Printed, PrintedTable, Slip


def read_printed(recipe: str | Path) -> Printed:
    """The numbers in the JSON file of the recipe's name, such as ``ablation.json`` beside ``ablation.py``.

    >>> from grotta.paper.tables import ablation
    >>> read_printed(ablation.__file__).tables["ablation"].value("grotta", "0.0001")
    10.2
    """
    content = json.loads(Path(recipe).with_suffix(".json").read_text(encoding="utf-8"))
    tables = {entry["name"]: _table(entry) for entry in content["tables"]}
    return Printed(tables, content.get("networks", {}), content.get("data", {}))


def _table(entry: Mapping[str, Any]) -> PrintedTable:
    rows = {row: tuple(numbers) for row, numbers in entry["rows"].items()}
    slips = tuple(Slip(**slip) for slip in entry.get("slips", ()))
    return PrintedTable(**{**entry, "columns": tuple(entry["columns"]), "rows": rows, "slips": slips})
