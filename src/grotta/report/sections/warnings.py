"""What a reader of a report must be warned about."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from grotta.bench.events import Failure
from grotta.bench.store.results import CellResult
from grotta.report.labels import data_name, network_name, plural, row_key, row_label, seeds, stream_name
from grotta.report.sections.setups import by_setup

_CODE = ("grotta", "code")  # the versions that say which code of ours made a cell


def reader_warnings(results: Sequence[CellResult], failures: Iterable[Failure] = ()) -> list[str]:
    """Failed cells, short domains, and tables that mix weights, data, code or software."""
    found = [f"Failed: {_where(failure)}: {failure.message}" for failure in failures]
    said: dict[str, list[str]] = defaultdict(list)
    for result in results:
        for warning in result.warnings:
            said[f"{data_name(result.spec.dataset)}: {warning}"].append(row_label(row_key(result.spec))[0])
    found += [f"{warning} ({', '.join(dict.fromkeys(rows))})." for warning, rows in said.items()]
    for setup, group in by_setup(results).items():
        data = data_name(setup.dataset)
        if len({result.model_fingerprint for result in group}) > 1:
            found.append(f"{data}: cells of one table ran with different weights of {network_name(setup.model)}.")
        if len({result.provenance for result in group}) > 1:
            found.append(f"{data}: cells of one table ran on published and on regenerated data.")
        found += _mixed_code(data, group)
    others = {tuple(sorted((k, v) for k, v in r.versions.items() if k not in _CODE)) for r in results}
    if len(others) > 1:
        found.append(f"The cells were made with {len(others)} different sets of software versions; see each cell.")
    return found


def _mixed_code(data: str, results: Sequence[CellResult]) -> list[str]:
    """A warning if cells of one table were made by different code of grotta, with the rows of each."""
    rows: dict[str, dict[str, None]] = defaultdict(dict)
    for result in results:
        code = " ".join(result.versions[name] for name in _CODE if name in result.versions)
        rows[code or "unknown"][row_label(row_key(result.spec))[0]] = None
    if len(rows) < 2:
        return []
    told = "; ".join(f"{code}: {', '.join(labels)}" for code, labels in rows.items())
    return [f"{data}: cells of one table were made by {plural(len(rows), 'version')} of grotta's code ({told})."]


def _where(failure: Failure) -> str:
    spec = failure.spec
    return f"{spec.label} on {data_name(spec.dataset)}, {stream_name(spec)}, {seeds(spec)}"
