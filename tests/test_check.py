"""Argument checks: one wording, the right exception, plain Python values."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from grotta import _check as c


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: c.check_number("lr", True), TypeError, "lr must be a number, got True"),
        (lambda: c.check_number("lr", None), TypeError, "lr must be a number, got None"),
        (lambda: c.check_number("lr", math.nan), ValueError, "lr must be finite, got nan"),
        (lambda: c.check_number("lr", 10**400), ValueError, "lr must be finite, got 1000"),
        (lambda: c.check_positive("lr", 0.0), ValueError, "lr must be positive, got 0.0"),
        (lambda: c.check_positive("lr", math.inf), ValueError, "lr must be finite, got inf"),
        (lambda: c.check_at_least("k", -0.5, 0), ValueError, "k must be at least 0, got -0.5"),
        (lambda: c.check_in_unit_interval("alpha", 2), ValueError, "alpha must be in [0, 1], got 2"),
        (lambda: c.check_in_unit_interval("alpha", math.nan), ValueError, "alpha must be in [0, 1], got nan"),
        (lambda: c.check_in_unit_interval("alpha", "1"), TypeError, "alpha must be a number, got '1'"),
        (lambda: c.check_between("lam", 1.0, 0, 1, below=True), ValueError, "lam must be in [0, 1), got 1.0"),
        (lambda: c.check_whole("n", 1.0), TypeError, "n must be a whole number, got 1.0"),
        (lambda: c.check_whole("n", False), TypeError, "n must be a whole number, got False"),
        (lambda: c.check_whole("n", 0, at_least=1), ValueError, "n must be at least 1, got 0"),
        (lambda: c.check_whole("n", -1, below=4), ValueError, "n must be in [0, 4), got -1"),
        (lambda: c.check_seed(-1), ValueError, "seed must be in [0, 2**63), got -1"),
        (lambda: c.check_seed(2**63), ValueError, "seed must be in [0, 2**63), got 9223372036854775808"),
        (lambda: c.check_flag("train", 1), TypeError, "train must be True or False, got 1"),
        (lambda: c.check_string("name", b"a"), TypeError, "name must be a string, got b'a'"),
        (lambda: c.check_string("name", ""), ValueError, "name must not be empty"),
        (lambda: c.check_one_of("mode", [], ("a", None)), ValueError, "mode must be one of 'a', None, got []"),
        (lambda: c.check_type("model", 3, dict), TypeError, "model must be a dict, got int"),
    ],
)
def test_an_error_names_the_argument_what_was_expected_and_what_came(call, error, says):
    with pytest.raises(error, match=re.escape(says)):
        call()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (c.check_number("x", np.float32(0.5)), 0.5),
        (c.check_positive("x", Fraction(1, 4)), 0.25),
        (c.check_at_least("x", 0, 0), 0.0),
        (c.check_in_unit_interval("x", 1), 1.0),
        (c.check_between("x", 0, 0, 1, below=True), 0.0),
        (c.check_whole("x", np.int64(3), at_least=3, below=4), 3),
        (c.check_seed(2**63 - 1), 2**63 - 1),
        (c.check_flag("x", False), False),
        (c.check_one_of("x", None, ("a", None)), None),
    ],
)
def test_a_good_value_comes_back_as_a_plain_one(value, expected):
    assert value == expected
    assert type(value) is type(expected)
