"""Symmetric Dirichlet draws that are stable for any concentration."""

import numpy as np
from numpy.typing import NDArray

# Below this the exponents overflow; long before it a draw is one class and nothing else.
_MIN_GAMMA = 1e-300


def log_dirichlet(gamma: float, shape: tuple[int, int], generator: np.random.Generator) -> NDArray[np.float64]:
    """(n, C) logarithms of n draws from the Dirichlet distribution with all C parameters ``gamma``.

    A Dirichlet draw is a normalised vector of Gamma(gamma) draws. For a small gamma these underflow to zero together,
    and the draw to 0/0; their logarithms do not: G U^(1/gamma) with G ~ Gamma(gamma + 1) and a uniform U is a
    Gamma(gamma) draw, and -log U is exponential.

    >>> draws = np.exp(log_dirichlet(1e-12, (4, 3), np.random.default_rng(0)))
    >>> draws.sum(axis=1).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    gamma = max(gamma, _MIN_GAMMA)
    log_draws = np.log(generator.standard_gamma(gamma + 1, shape))
    log_draws -= generator.standard_exponential(shape) / gamma
    return log_normalised(log_draws)


def log_normalised(log_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of weights, shifted so that the weights along the last axis sum to 1; -inf is a zero weight."""
    shifted = log_weights - log_weights.max(axis=-1, keepdims=True)
    normalised: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normalised
