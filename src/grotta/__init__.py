"""grotta: test-time adaptation that survives drifting images and drifting labels.

>>> import torch, grotta
>>> model = grotta.models.create_model("fashion_resnet8", weights="bundled")
>>> adapter = grotta.create("grotta", model)
>>> adapter(torch.rand(8, 3, 32, 32)).shape
torch.Size([8, 10])
"""

from typing import TYPE_CHECKING

from grotta._lazy import lazy
from grotta._version import __version__

if TYPE_CHECKING:
    from grotta import checks, data, functional, memory, models, nn, outputs, streams
    from grotta.methods import Adapter, GRoTTA, StepInfo, create, list_methods, load, register
else:  # imported when first used: the command line answers without torch
    _MODULES = ("checks", "data", "functional", "memory", "models", "nn", "outputs", "streams")
    _METHODS = ("Adapter", "GRoTTA", "StepInfo", "create", "list_methods", "load", "register")
    __getattr__, __dir__ = lazy(
        __name__, {**dict.fromkeys(_MODULES, ""), **dict.fromkeys(_METHODS, "grotta.methods")}, globals()
    )

__all__ = [
    "Adapter",
    "GRoTTA",
    "StepInfo",
    "__version__",
    "checks",
    "create",
    "data",
    "functional",
    "list_methods",
    "load",
    "memory",
    "models",
    "nn",
    "outputs",
    "register",
    "streams",
]
