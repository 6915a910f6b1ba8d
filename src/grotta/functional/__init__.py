"""Pure functions on tensors: affinity, refinement, imbalance, losses and label-shift statistics.

Nothing here keeps state, draws random numbers or moves data between devices.
"""

from grotta.functional.affinity import knn_affinity, rbf_affinity
from grotta.functional.agreement import accuracies_from_agreement, pairwise_agreement
from grotta.functional.imbalance import imbalance_score
from grotta.functional.laplacian import laplacian_refine
from grotta.functional.losses import distillation_loss, entropy, soft_cross_entropy, softmax_entropy
from grotta.functional.refine import Refined, bias_guided_refine
from grotta.functional.shift import change_degree, imbalance_degree

__all__ = [
    "Refined",
    "accuracies_from_agreement",
    "bias_guided_refine",
    "change_degree",
    "distillation_loss",
    "entropy",
    "imbalance_degree",
    "imbalance_score",
    "knn_affinity",
    "laplacian_refine",
    "pairwise_agreement",
    "rbf_affinity",
    "soft_cross_entropy",
    "softmax_entropy",
]
