import pytest

from grotta import checks
from grotta.methods import list_methods


@pytest.mark.parametrize("check", checks.CHECKS.values(), ids=checks.CHECKS)
@pytest.mark.parametrize("method", list_methods())
def test_contract(method: str, check: checks.Check) -> None:
    check(method)
