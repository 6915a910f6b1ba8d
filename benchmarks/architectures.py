"""Which published architectures every method adapts: two steps of each method on each, with random weights.

``make architectures`` installs timm, torchvision and transformers beside the environment, runs this and writes
``docs/architectures.md``. Every architecture runs in a process of its own, so that one that aborts costs its row only.
"""

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn

import grotta
from benchmarks.subjects import train_always
from grotta.methods import EATA, PeTTA, method_class
from grotta.methods.fair_training import FEWEST
from grotta.methods.grotta_plus import GRoTTAPlus

CLASSES, BATCH, STEPS, SMALL = 10, 2, 2, 64
SECONDS = 300  # for one architecture
# Random weights are sure of nothing and two images are no memory full: settings under which every method really steps.
OPTIONS: dict[str, dict[str, Any]] = {
    "cotta": {"views": 2},  # 32 views are 32 times the same check
    "note": {"update_every": BATCH},
    "rotta": {"update_every": BATCH},
    "eata": {"margin": 1.0, "redundancy": 1.0},
    "rdumb": {"margin": 1.0, "redundancy": 1.0},
    "sar": {"margin": 1.0},
    "deyo": {"margin": 1.0, "shape": -1.0},
    "tribe": {"margin": 1.0},
}
TIMM = Path(__file__).with_name("timm_architectures.txt")  # one of each family; NAME@SIZE for images of another size
MARKS = {"adapts": "✓", "as source": "–", "refused": "R", "aborted": "A"}


def hugging_face() -> dict[str, Callable[[], nn.Module]]:
    """Small image classifiers of transformers, by name."""
    import transformers as hf

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    images: dict[str, Any] = {"image_size": SMALL, "patch_size": 16, "num_labels": CLASSES}
    return {
        "ViTForImageClassification": lambda: hf.ViTForImageClassification(hf.ViTConfig(**sizes, **images)),
        "ConvNextForImageClassification": lambda: hf.ConvNextForImageClassification(
            hf.ConvNextConfig(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_labels=CLASSES)
        ),
        "SwinForImageClassification": lambda: hf.SwinForImageClassification(
            hf.SwinConfig(
                image_size=SMALL, embed_dim=24, depths=[1, 1], num_heads=[2, 2], window_size=4, num_labels=CLASSES
            )
        ),
        "ResNetForImageClassification": lambda: hf.ResNetForImageClassification(
            hf.ResNetConfig(embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], num_labels=CLASSES)
        ),
        "MobileNetV2ForImageClassification": lambda: hf.MobileNetV2ForImageClassification(
            hf.MobileNetV2Config(depth_multiplier=0.35, num_labels=CLASSES)
        ),
    }


def make_model(name: str, size: int) -> nn.Module:
    """The architecture ``name`` with random weights, for images of ``size`` pixels if it can be."""
    # torchvision is built for another torch; two operators that it describes and nobody here calls are missing.
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.manual_seed(0)
    package, _, architecture = name.partition(":")
    if package == "transformers":
        return hugging_face()[architecture]().eval()
    import timm

    try:
        return timm.create_model(architecture, num_classes=CLASSES, img_size=size).eval()
    except Exception:  # it has no such option, or not that size
        return timm.create_model(architecture, num_classes=CLASSES).eval()


def image_size(model: nn.Module, wanted: int) -> int:
    """The wanted size if the model takes it, else the one that it declares, or the usual one."""
    declared = getattr(model, "default_cfg", {}).get("input_size", (3, 224, 224))[-1]
    for size in (wanted, declared):
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")
            try:
                model(torch.rand(BATCH, 3, size, size))
            except Exception:
                continue
            return int(size)
    raise RuntimeError("the model takes none of the sizes tried")


def random_images(count: int, size: int, seed: int) -> torch.Tensor:
    return torch.rand(count, 3, size, size, generator=torch.Generator().manual_seed(seed))


def draw_classifier(model: nn.Module, size: int) -> None:
    """Give the classifier random weights that tell classes apart, as a trained one's do: many are made with zeros."""
    adapter = grotta.create("source", model)
    classifier = model.get_submodule(adapter.feature_layer)
    with torch.no_grad():
        classifier.weight.normal_()
        spread = adapter.infer(random_images(BATCH, size, seed=STEPS)).logits.std(1).mean()
        classifier.weight.div_(spread.clamp_min(1e-12))


def try_method(method: str, model: nn.Module, size: int) -> dict[str, str]:
    """What comes of two steps of ``method``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            adapter = grotta.create(method, model, **OPTIONS.get(method, {}))
            if isinstance(adapter, EATA | PeTTA):
                adapter.calibrate(random_images(BATCH, size, seed=STEPS))
            stepped = False
            for step in range(STEPS):
                probs = adapter(random_images(BATCH, size, seed=step))
                if not (probs.shape == (BATCH, CLASSES) and probs.isfinite().all()):
                    raise AssertionError(f"outputs are no probabilities of shape {tuple(probs.shape)}")
                stepped = stepped or adapter.last.loss is not None
            if isinstance(adapter, GRoTTAPlus) and adapter.trainer is not None:  # it would wait for hundreds of images
                train_always(adapter.trainer)
                with torch.no_grad():
                    loss = adapter.trainer.step(adapter.to_input(random_images(FEWEST, size, seed=STEPS)))
                stepped = loss is not None
            if adapter.describe().trained and not stepped:
                raise AssertionError("it has parameters to train and did not train them")
        except Exception as error:
            return {"outcome": "refused", "says": f"{type(error).__name__}: {error}"}
    idle = any("finds nothing to adapt" in str(warning.message) for warning in caught)
    idle = idle or not adapter.describe().adapts
    return {"outcome": "as source" if idle else "adapts"}


def run_one(name: str) -> None:
    """Try every method on one architecture; one line of JSON each, as they are done."""
    architecture, _, wanted = name.partition("@")
    model = make_model(architecture, int(wanted or SMALL))
    size = image_size(model, int(wanted or SMALL))
    draw_classifier(model, size)
    layers = grotta.create("source", model, output="bias_guided").describe().layers
    print(
        json.dumps({"layers": layers, "size": size, "parameters": sum(p.numel() for p in model.parameters())}),
        flush=True,
    )
    for method in grotta.list_methods():
        print(json.dumps({"method": method, **try_method(method, model, size)}), flush=True)


def run_apart(name: str) -> dict[str, Any]:
    """:func:`run_one` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.architectures", "--one", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        lines, code, said = done.stdout.splitlines(), done.returncode, done.stderr
    except subprocess.TimeoutExpired as error:
        out = error.stdout or b""
        lines, code, said = (out if isinstance(out, str) else out.decode()).splitlines(), -1, f"took over {SECONDS} s"
    parsed = [json.loads(line) for line in lines if line.startswith("{")]
    if not parsed:
        return {
            "name": name,
            "layers": {},
            "size": 0,
            "parameters": 0,
            "methods": {},
            "failed": said.strip().split("\n")[-1],
        }
    methods = {each.pop("method"): each for each in parsed[1:]}
    if code != 0:
        for method in grotta.list_methods():
            methods.setdefault(method, {"outcome": "aborted", "says": (said.strip().split("\n") or [""])[-1]})
    return {"name": name, **parsed[0], "methods": methods, "failed": ""}


def to_markdown(rows: list[dict[str, Any]], versions: str) -> str:
    """The table, with every refusal under it."""
    methods = [name for name in grotta.list_methods() if any(name in row["methods"] for row in rows)]
    tried = [(row["name"], method, row["methods"][method]) for row in rows for method in row["methods"]]
    refused = [each for each in tried if each[2]["outcome"] == "refused"]
    aborted = [each for each in tried if each[2]["outcome"] == "aborted"]
    lines = [
        "# Architectures",
        "",
        f"{STEPS} steps of every method on one architecture of each family, {BATCH} random images at a time, random "
        f"weights, {CLASSES} classes: `make architectures` ({versions}). Of {len(tried)} pairs, {len(refused)} "
        f"({len(refused) / max(len(tried), 1):.1%}) are refused and {len(aborted)} abort.",
        "",
        "Filters are opened and updates made at every batch (`OPTIONS` in `benchmarks/architectures.py`), so that every"
        " method that trains takes a step on its gradient, and not taking one counts as refused. RepVGG, MobileOne and "
        "FastViT, whose first layer makes torch 2.13 abort on larger images where it is trained in channels_last, are "
        "run at 128 pixels.",
        "",
        "✓ adapts · – nothing for the method to adapt: it predicts as the source model · R refused, with the "
        "sentence below · A the process aborted",
        "",
        "| architecture | normalisation layers | size | " + " | ".join(method_class(m).title for m in methods) + " |",
        "|---|---|---|" + ":-:|" * len(methods),
    ]
    for row in rows:
        kinds = ", ".join(f"{count} {kind}" for kind, count in row["layers"].items()) or "none"
        marks = (MARKS[row["methods"][m]["outcome"]] if m in row["methods"] else "?" for m in methods)
        architecture = row["name"].partition("@")[0].replace(":", " ")
        lines.append(f"| {architecture} | {kinds} | {row['size']} | " + " | ".join(marks) + " |")
    sentences: dict[str, list[str]] = {}
    for name, method, each in [*refused, *aborted]:
        sentences.setdefault(each.get("says", ""), []).append(f"{name.partition(':')[2]} with {method}")
    if sentences:
        lines += ["", "## Refusals", ""]
        lines += [f"- {', '.join(where)}: {' '.join(says.split())}" for says, where in sentences.items()]
    failed = [f"{row['name']}: {row['failed']}" for row in rows if row["failed"]]
    if failed:
        lines += ["", "Not made by its package here: " + "; ".join(failed) + "."]
    return "\n".join(lines) + "\n"


def names() -> Iterator[str]:
    """All architectures."""
    yield from (f"timm:{name}" for name in TIMM.read_text().split())
    yield from (f"transformers:{name}" for name in hugging_face())


def versions() -> str:
    return ", ".join(f"{name} {version(name).split('+')[0]}" for name in ("timm", "transformers", "torch"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", help="one architecture, in this process, as lines of JSON")
    parser.add_argument("--only", nargs="*", help="these architectures instead of all")
    parser.add_argument("--rows", type=Path, help="keep results in this file, and do not run again what is in it")
    parser.add_argument("--out", type=Path, default=Path("docs/architectures.md"))
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one)
        return
    kept = {}
    if arguments.rows and arguments.rows.exists():
        kept = {row["name"]: row for row in map(json.loads, arguments.rows.read_text().splitlines())}
    for name in arguments.only or names():
        if name in kept:
            continue
        row = kept[name] = run_apart(name)
        outcomes = [each["outcome"] for each in row["methods"].values()]
        print(f"{name}: { ({mark: outcomes.count(what) for what, mark in MARKS.items()}) } {row['failed']}", flush=True)
        if arguments.rows:
            with arguments.rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
    rows = [kept[name] for name in names() if name in kept]
    arguments.out.write_text(to_markdown(rows, versions()))
    print(f"{arguments.out} written")
    sys.exit(any(each["outcome"] == "aborted" for row in rows for each in row["methods"].values()))


if __name__ == "__main__":
    main()
