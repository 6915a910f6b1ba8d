"""An output adaptation: predictions to a power."""

from torch import Tensor

from grotta.functional import imbalance_score
from grotta.outputs import Output, OutputAdaptation, register


@register("sharpened")
class Sharpened(OutputAdaptation):
    """Make predictions more certain.

    Args:
        num_classes: of the predictions.
        power: larger than 1 sharpens.
    """

    def __init__(self, num_classes: int, *, power: float = 2.0) -> None:
        super().__init__(num_classes)
        self.power = power

    def refine(self, probs: Tensor, features: Tensor) -> Output:
        """The predictions to the power, with sum 1."""
        raised = probs**self.power
        return Output(raised / raised.sum(1, keepdim=True), imbalance_score(probs))
