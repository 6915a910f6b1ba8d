"""A result counts only as long as it was made by the code that is installed: seen from outside, in real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grotta.bench import CellSpec
from grotta.bench.store.method_code import cell_digest, class_files, code_digest, code_of
from grotta.methods import method_class

METHOD = """
import grotta

@grotta.register("mine")
class Mine(grotta.methods.Tent):
    'A method of somebody else.'

    def __init__(self, model, *, lr=LR, **options):
        super().__init__(model, lr=lr, **options)

    def infer(self, inputs):
        prediction = super().infer(inputs)  # as TENT does
        return grotta.methods.Prediction(SIGN * prediction.logits, prediction.features)
"""
RUN = """
import sys, mine
from grotta.bench import CellSpec, run_grid
from grotta.bench.events import Finished, Warned
out, root, *methods = sys.argv[1:]
values = {"dataset": "cifar10-c", "domains": ("fog",), "gamma": 0.1, "model": "fashion_resnet8", "period": 50}
def tell(event):
    if isinstance(event, Warned):
        print(event.spec.method, "warned:", event.message)
    if isinstance(event, Finished):
        print(event.spec.method, "reused" if event.reused else "run", event.result.error)
run_grid([CellSpec(method=name, **values) for name in methods], out, executor="inline", data_root=root, on_event=tell)
"""


@pytest.fixture
def run(tmp_path: Path, data_root: Path):
    def call(*methods: str, sign: str = "1", comment: str = "") -> list[str]:
        (tmp_path / "mine.py").write_text(METHOD.replace("SIGN", sign).replace("LR", "1e-3") + comment)
        words = [sys.executable, "-B", "-c", RUN, str(tmp_path / "out"), str(data_root), *methods]
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH", "")])])
        done = subprocess.run(words, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return call


def test_an_edited_method_is_run_again_with_a_warning_and_others_are_not(run, tmp_path: Path) -> None:
    first = run("mine", "source")
    assert [line.split()[:2] for line in first] == [["source", "run"], ["mine", "run"]]
    results = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("cells/*/result.json")]
    [source] = [result for result in results if result["spec"]["method"] == "source"]
    assert source["method_fingerprint"] == cell_digest(CellSpec.from_dict(source["spec"]))
    assert [line.split()[1] for line in run("mine", "source", comment="# a remark")] == ["reused", "reused"]
    edited = run("mine", "source", sign="-1")
    assert next(line for line in edited if "warned" not in line).split()[:2] == ["source", "reused"]
    [warning] = [line for line in edited if "warned" in line]
    assert "out of date: the code of method mine has changed; it is run again" in warning
    assert edited[-1].startswith("mine run")
    assert edited[-1] != first[-1]


def test_an_edited_default_of_an_option_is_other_code() -> None:
    assert code_of(METHOD.replace("LR", "1e-3")) != code_of(METHOD.replace("LR", "1e-2"))


def test_the_digest_covers_what_a_method_is_made_of_and_no_other_method() -> None:
    files = class_files(method_class("rotta"))
    assert {"grotta.methods.rotta", "grotta.methods.base", "grotta.augment", "grotta.memory.cstu"} <= files.keys()
    assert "grotta.methods.cotta" not in files
    digests = [code_digest(method_class(name)) for name in ("source", "bn", "tent", "pl", "rotta", "grotta")]
    assert len(set(digests)) == len(digests)


def test_words_are_not_code() -> None:
    source = 'def f(x):\n    """Double."""\n    return 2 * x  # twice\n'
    assert code_of(source) == code_of(source.replace("Double", "Twice").replace("  # twice", "\n"))
    assert code_of(source) != code_of(source.replace("2 * x", "3 * x"))
    assert code_of("x = '# no comment'") == "x = '# no comment'"
