"""Output adaptations: what turns a method's predictions into the probabilities that go out. One file each.

>>> import torch
>>> adaptation = create("bias_guided", num_classes=2, k=3)
>>> adaptation(torch.tensor([[0.9, 0.1]]), torch.ones(1, 4)).probs
tensor([[0.9000, 0.1000]])
"""

from grotta.outputs.base import Output, OutputAdaptation
from grotta.outputs.bias_guided import BiasGuided
from grotta.outputs.laplacian import Laplacian
from grotta.outputs.registry import create, list_outputs, output_class, register
from grotta.outputs.stream import StreamPrior
from grotta.outputs.unchanged import Unchanged

__all__ = [
    "BiasGuided",
    "Laplacian",
    "Output",
    "OutputAdaptation",
    "StreamPrior",
    "Unchanged",
    "create",
    "list_outputs",
    "output_class",
    "register",
]
