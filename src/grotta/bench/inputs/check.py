"""Does everything that a spec names exist? Asked before anything is opened or run."""

from grotta import methods
from grotta._check import check_one_of
from grotta.bench import experiments
from grotta.bench.inputs.opened import STREAMS
from grotta.bench.spec import CellSpec
from grotta.data.registry import find_entry


def check_spec(spec: CellSpec) -> None:
    """Raise a ``ValueError`` if the spec names a method, preset, stream or data set that does not exist."""
    check_preset(spec.preset, spec.method)
    check_one_of("stream", spec.stream, STREAMS)
    find_entry(spec.dataset, "dataset")


def check_preset(preset: str, method: str) -> None:
    """Raise a ``ValueError`` if the method does not have the preset; the error says which methods do.

    >>> check_preset("fast", "grotta")
    """
    experiments.prepare(method)
    known = methods.method_class(method).presets
    if preset not in known:
        having = [name for name in methods.list_methods() if preset in methods.method_class(name).presets]
        who = f"only {', '.join(having)} {'has' if len(having) == 1 else 'have'} it" if having else "no method has it"
        raise ValueError(f"preset must be one of {', '.join(known)} for method {method!r}, got {preset!r} ({who})")


def check_device(device: str) -> None:
    """Raise a ``ValueError`` if tensors cannot be kept on ``device``.

    >>> check_device("cpu")
    """
    import torch

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"device must be one that works here (cpu, cuda, cuda:1, ...), got {device!r}: {reason}"
        ) from None
