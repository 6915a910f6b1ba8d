"""Normalisation layers for test-time adaptation, and the means to put them into any network."""

from grotta.nn.affine import affine_layers, own_affine
from grotta.nn.balanced_bn import BalancedBN1d, BalancedBN2d, labelled
from grotta.nn.batch_stats import BatchStatsBN1d, BatchStatsBN2d
from grotta.nn.convert import (
    NormFactory,
    balanced,
    batch_stats,
    convert_norm,
    gated,
    gpre_rbn,
    iabn,
    norm_layers,
    rbn,
    replace_norms,
    set_tracking,
    tracking,
)
from grotta.nn.gated_bn import GatedBN1d, GatedBN2d, observing
from grotta.nn.gated_move import move_gates
from grotta.nn.iabn import IABN1d, IABN2d
from grotta.nn.network import Network, find_classifier
from grotta.nn.norm_base import AdaptiveNorm
from grotta.nn.robust_bn import GpreRBN1d, GpreRBN2d, RBN1d, RBN2d, RobustBatchNorm
from grotta.nn.share import own_parameters, shared_copy, storages

__all__ = [
    "AdaptiveNorm",
    "BalancedBN1d",
    "BalancedBN2d",
    "BatchStatsBN1d",
    "BatchStatsBN2d",
    "GatedBN1d",
    "GatedBN2d",
    "GpreRBN1d",
    "GpreRBN2d",
    "IABN1d",
    "IABN2d",
    "Network",
    "NormFactory",
    "RBN1d",
    "RBN2d",
    "RobustBatchNorm",
    "affine_layers",
    "balanced",
    "batch_stats",
    "convert_norm",
    "find_classifier",
    "gated",
    "gpre_rbn",
    "iabn",
    "labelled",
    "move_gates",
    "norm_layers",
    "observing",
    "own_affine",
    "own_parameters",
    "rbn",
    "replace_norms",
    "set_tracking",
    "shared_copy",
    "storages",
    "tracking",
]
