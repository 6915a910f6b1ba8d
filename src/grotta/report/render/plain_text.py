"""Text for terminals that cannot show all characters: ASCII replacements for the ones we use."""

import re

_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_ASCII = str.maketrans(
    {
        **{"γ": "gamma", "λ": "lambda", "ζ": "zeta", "σ": "sigma", "√": "sqrt"},
        **{"±": "+-", "†": "+", "–": "-", "−": "-", "→": "->", "↓": "v", "×": "x", "…": "...", "·": "."},
        **{"━": "=", "⁻": "-", "’": "'"},
    }
)


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
        powers = re.sub("10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda found: f"1e{found[1].translate(_SUPERSCRIPTS)}", text)
        return powers.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text
