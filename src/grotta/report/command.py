"""The command that reproduces a cell."""

import json
import shlex

from grotta.bench.spec import CellSpec


def command(spec: CellSpec) -> str:
    """``grotta run ...`` for a cell; defaults are left out.

    >>> command(CellSpec(method="grotta", dataset="fashion-c", domains=("fog",), gamma=1e-4, options={"k": 10}))
    'grotta run --method grotta --dataset fashion-c --domains fog --gamma 0.0001 --option k=10'
    """
    words = ["--method", spec.method, "--dataset", spec.dataset, "--domains", ",".join(spec.domains)]
    words += ["--gamma", repr(spec.gamma)]
    for name in ("model", "preset", "period", "stream", "stream_seed", "seed", "batch_size", "image_size", "images"):
        value = getattr(spec, name)
        if value != CellSpec.__dataclass_fields__[name].default:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--per-stream"] * spec.per_stream
    for key, value in spec.options:
        words += ["--option", f"{key}={value if _is_plain_word(value) else json.dumps(value)}"]
    return shlex.join(["grotta", "run", *words])


def _is_plain_word(value: object) -> bool:
    """Whether ``grotta run`` would read the value back as this string: it reads JSON where it can."""
    if not isinstance(value, str):
        return False
    try:
        json.loads(value)
    except ValueError:
        return True
    return False
