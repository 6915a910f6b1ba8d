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
# Each version of the method is imported by a process of its own, forked from one that has imported everything else.
RUN = """
import json, os, sys
from grotta.bench import CellSpec, run_grid
from grotta.bench.events import Finished, Warned
sys.dont_write_bytecode = True
out, root, file = sys.argv[1:]
values = {"dataset": "cifar10-c", "domains": ("fog",), "gamma": 0.1, "model": "fashion_resnet8", "period": 50}
def tell(event):
    if isinstance(event, Warned):
        print(event.spec.method, "warned:", event.message)
    if isinstance(event, Finished):
        print(event.spec.method, "reused" if event.reused else "run", event.result.error)
for version in json.loads(sys.stdin.read()):
    open(file, "w").write(version)
    if (child := os.fork()) == 0:
        import mine
        specs = [CellSpec(method=name, **values) for name in ("mine", "source")]
        run_grid(specs, out, executor="inline", data_root=root, on_event=tell)
        print("--", flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def run_versions(folder: Path, data_root: Path, *versions: str) -> list[list[str]]:
    """What is said of two cells, ``mine`` and ``source``, with one version of the method after the other."""
    words = [sys.executable, "-c", RUN, str(folder / "out"), str(data_root), str(folder / "mine.py")]
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH", "")])])
    environment = os.environ | {"PYTHONPATH": path}
    given = json.dumps(versions)
    done = subprocess.run(words, input=given, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [said.splitlines() for said in done.stdout.split("--\n")[:-1]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_an_edited_method_is_run_again_with_a_warning_and_others_are_not(tmp_path: Path, data_root: Path) -> None:
    plain = METHOD.replace("LR", "1e-3")
    versions = (plain.replace("SIGN", "1"), plain.replace("SIGN", "1") + "# a remark", plain.replace("SIGN", "-1"))
    first, remarked, edited = run_versions(tmp_path, data_root, *versions)
    assert [line.split()[:2] for line in first] == [["source", "run"], ["mine", "run"]]
    results = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("cells/*/result.json")]
    [source] = [result for result in results if result["spec"]["method"] == "source"]
    assert source["method_fingerprint"] == cell_digest(CellSpec.from_dict(source["spec"]))
    assert [line.split()[1] for line in remarked] == ["reused", "reused"]
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
