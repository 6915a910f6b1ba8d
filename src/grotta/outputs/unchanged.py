"""No output adaptation."""

from torch import Tensor

from grotta.outputs.base import Output, OutputAdaptation, unrefined


class Unchanged(OutputAdaptation):
    """Predictions go out as they are; what ``output=None`` stands for."""

    def refine(self, probs: Tensor, features: Tensor) -> Output:
        """``probs`` and their imbalance score."""
        return unrefined(probs)
