from typing import Any

import pytest
from torch import nn

from grotta import checks
from grotta.methods import Adapter, create, list_methods


@pytest.mark.parametrize("check", checks.CHECKS.values(), ids=checks.CHECKS)
@pytest.mark.parametrize("method", list_methods())
def test_contract(method: str, check: checks.Check, monkeypatch: pytest.MonkeyPatch) -> None:
    if method == "cotta":  # each of its 32 passes of a batch does the same
        monkeypatch.setattr(checks.contract, "create", with_three_views)
    check(method)


def with_three_views(name: str, model: nn.Module, **options: Any) -> Adapter:
    return create(name, model, **({"views": 3} if name == "cotta" else {}), **options)
