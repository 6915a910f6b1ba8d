"""Network architectures, the bundled source models, and their training."""

from grotta.models.bundled import model_card
from grotta.models.registry import create_model, list_models
from grotta.models.training import Recipe, accuracy, train
from grotta.models.weights import load_weights

__all__ = ["Recipe", "accuracy", "create_model", "list_models", "load_weights", "model_card", "train"]
