"""Text for terminals that cannot show all characters: ASCII replacements for the ones we use."""

import re

_POWER = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
ASCII = {
    **{"α": "alpha", "γ": "gamma", "Δ": "delta ", "ζ": "zeta", "λ": "lambda", "σ": "sigma", "√": "sqrt"},
    **{"±": "+-", "†": "+", "–": "-", "—": "-", "−": "-", "→": "->", "↓": "v", "×": "x", "…": "...", "·": "."},
    **{"━": "=", "╸": "-", "╺": "-", "’": "'"},
    **dict(zip(_POWER, "-0123456789")),
}


def encodable(text: str, encoding: str) -> str:
    """``text``, with characters that ``encoding`` lacks replaced.

    >>> encodable("γ = 10⁻⁴: 13.4 ± 0.2 ↓5.1", "ascii")
    'gamma = 1e-4: 13.4 +- 0.2 v5.1'
    >>> encodable("γ = 10⁻⁴", "utf-8")
    'γ = 10⁻⁴'
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        powers = re.sub(f"10(?=[{_POWER}])", "1e", text)
        return (
            powers.translate({ord(one): words for one, words in ASCII.items()})
            .encode(encoding, "replace")
            .decode(encoding)
        )
    return text
