"""Executors by name: each is a module with an ``EXECUTOR``, imported when it is asked for."""

import importlib

from grotta._check import check_one_of
from grotta.bench.execute.executor import Executor

_MODULES = {
    "local": "grotta.bench.execute.local",
    "ray": "grotta.bench.execute.ray.driver",
    "inline": "grotta.bench.execute.inline",
}


def find_executor(name: str) -> Executor:
    """The executor of that name.

    >>> find_executor("inline").remote
    False
    """
    module = importlib.import_module(_MODULES[check_one_of("executor", name, _MODULES)])
    executor: Executor = module.EXECUTOR
    return executor
