"""``compile=True``: the same results, for any batch size, and a warning where there is no compiler."""

import functools
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

import grotta
from grotta.checks import batches, run, same, same_state, small_model

SIZES = (20, 1, 33)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace and differentiate as ``torch.compile`` does, without the minutes that generating machine code takes."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))


def fail(graph: object, inputs: object) -> object:
    raise RuntimeError("no compiler\nand a long story")


@pytest.mark.usefixtures("traced")
def test_compiled_grotta_gives_the_same_results_for_any_batch_size() -> None:
    eager, compiled = (grotta.create("grotta", small_model(), compile=flag) for flag in (False, True))
    for x in batches(SIZES):
        torch.testing.assert_close(compiled(x), eager(x), rtol=0, atol=1e-5)
    mine, theirs = compiled.state_dict(), eager.state_dict()
    assert mine.keys() == theirs.keys()
    for key, value in theirs.items():
        torch.testing.assert_close(mine[key], value, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("traced")
def test_compiled_adapters_reset_save_and_load_like_any_other(tmp_path: Path) -> None:
    model = small_model()
    adapter = grotta.create("tent", model, compile=True)
    first = run(adapter, batches(SIZES))
    adapter.save(tmp_path / "adapter.safetensors")
    loaded = grotta.load(tmp_path / "adapter.safetensors", model)
    assert loaded.arguments["compile"]
    assert same_state(adapter.state_dict(), loaded.state_dict())
    assert same(run(adapter, batches(SIZES, seed=1)), run(loaded, batches(SIZES, seed=1)))
    adapter.reset()
    assert same(run(adapter, batches(SIZES)), first)


@pytest.mark.parametrize("method", ["source", "tent", "grotta"])
def test_a_compiler_that_fails_costs_one_warning_and_nothing_else(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=fail))
    eager, adapter = (grotta.create(method, small_model(), compile=flag) for flag in (False, True))
    with pytest.warns(UserWarning, match=r"compile=True has no effect.*no compiler\)") as caught:
        outputs = run(adapter, batches(SIZES))
    assert len(caught) == 1
    assert same(outputs, run(eager, batches(SIZES)))
    assert same_state(adapter.state_dict(), eager.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter.reset()
        adapter(next(batches((8,))))


def test_a_backward_that_cannot_be_compiled_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def unchanged(graph: torch.fx.GraphModule, inputs: object) -> object:
        return make_boxed_func(graph.forward)

    backend = aot_autograd(fw_compiler=unchanged, bw_compiler=fail)
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    eager, adapter = (grotta.create("grotta", small_model(), compile=flag) for flag in (False, True))
    with pytest.warns(UserWarning, match="no compiler"):
        outputs = run(adapter, batches(SIZES))
    for ours, theirs in zip(outputs, run(eager, batches(SIZES)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("traced")
def test_a_batch_that_the_model_refuses_is_refused_and_compiling_goes_on() -> None:
    adapter = grotta.create("source", small_model(), compile=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter(next(batches((8,))))
        with pytest.raises(ValueError, match="x of shape"):
            adapter(torch.rand(4, 2, 12, 12))
        adapter(next(batches((8,))))


@pytest.mark.slow  # minutes of a C++ compiler on a busy machine
@pytest.mark.parametrize("method", grotta.list_methods())
def test_every_method_gives_the_same_results_compiled_to_machine_code(method: str) -> None:
    eager, compiled = (grotta.create(method, small_model(), compile=flag) for flag in (False, True))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile=True has no effect")
        warnings.filterwarnings("ignore", module="torch")
        for x in batches(SIZES):
            torch.testing.assert_close(compiled(x), eager(x), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_without_a_c_compiler_an_adapter_warns_once_and_works(tmp_path: Path) -> None:
    program = (
        "import warnings, grotta\n"
        "from grotta.checks import batches, run, same, small_model\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always', UserWarning)\n"
        "    outputs = run(grotta.create('source', small_model(), compile=True), batches())\n"
        "assert same(outputs, run(grotta.create('source', small_model()), batches()))\n"
        "print(*[w.message for w in caught if 'compile=True' in str(w.message)], sep='\\n')\n"
    )
    missing = str(tmp_path / "no-such-compiler")
    environment = os.environ | {"CC": missing, "CXX": missing, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.count("compile=True has no effect") == 1
