"""``grotta train``: a source model for a data set, or for one domain of it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from grotta.commands.options import DataRoot, Device, Json, comma_separated, with_options

if TYPE_CHECKING:
    from torch import nn

    from grotta.models.training import EpochResult, Recipe

_IMAGE_SIZE = 224


@dataclass(frozen=True, kw_only=True)
class RecipeOptions:
    """The settings of a training, with the defaults of :class:`grotta.models.training.Recipe`."""

    epochs: Annotated[int, typer.Option(help="Passes over the data.")] = 15
    batch_size: Annotated[int, typer.Option(help="Images per step.")] = 128
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = 0.1
    momentum: Annotated[float, typer.Option(help="Nesterov momentum.")] = 0.9
    weight_decay: Annotated[float, typer.Option(help="L2 penalty.")] = 5e-4
    label_smoothing: Annotated[float, typer.Option(help="In [0, 1).")] = 0.0
    warmup: Annotated[float, typer.Option(help="Share of the steps until the peak.")] = 0.25
    shift: Annotated[float, typer.Option(help="Random shift, as a share of the side.")] = 0.125
    flip: Annotated[bool, typer.Option(help="Mirror half of the images.")] = True
    seed: Annotated[int, typer.Option(help="Seed of weights, order and augmentation.")] = 0

    def recipe(self) -> Recipe:
        from grotta.models.training import Recipe

        return Recipe(**{field.name: getattr(self, field.name) for field in fields(self)})


def prepare_model(name: str, weights: str | None, num_classes: int, seed: int) -> tuple[nn.Module, str]:
    """Build the model to train, and describe what it starts from.

    Given weights are used completely; if they are for another number of classes, the classifier is initialised again.
    """
    from grotta.models.bundled import bundled_path
    from grotta.models.registry import create_model
    from grotta.models.state_file import read_state
    from grotta.models.weights import copy_state, num_classes_of

    model = create_model(name, num_classes=num_classes, seed=seed)
    if weights is None:
        return model, f"weights drawn with seed {seed}"
    path = bundled_path(name) if weights == "bundled" else Path(weights).expanduser()
    state = read_state(path)
    other = num_classes_of(model, state) != num_classes
    copy_state(model, state, f"{path} does not fit {name}", keep_classifier=other)
    return model, f"{path.name}{_origin(path)}{', with a new classifier' if other else ''}"


def _origin(path: Path) -> str:
    """How the weights in ``path`` were made, if this command made them."""
    from grotta.models.card import read_card

    card = read_card(path)
    return f" (`{card['command']}`, accuracy {100 * card['accuracy']:.2f} %)" if card else ""


def command_line(dataset: str, model: str, recipe: Recipe, half: bool, **options: str | int | None) -> str:
    """The command that repeats a training, with every setting that is not the default.

    >>> from grotta.models.training import Recipe
    >>> command_line("pacs", "resnet18", Recipe(epochs=3, flip=False), half=True, domain="photo", weights=None)
    'grotta train pacs --model resnet18 --domain photo --epochs 3 --no-flip --half'
    """
    words = ["grotta", "train", dataset, "--model", model]
    changed = {
        setting.name: getattr(recipe, setting.name)
        for setting in fields(recipe)
        if getattr(recipe, setting.name) != setting.default
    }
    for name, value in {**options, **changed}.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif value is not None:
            words += [f"--{option}", str(value)]
    return shlex.join(words + (["--half"] if half else []))


class Reporter:
    """Progress of a training on stderr: a line for each epoch, and on a terminal a bar."""

    def __init__(self, label: str, epochs: int) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        self._bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(label, total=None)
        self._epochs = epochs

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def step(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def epoch(self, result: EpochResult) -> None:
        self._bar.console.print(
            f"epoch {result.epoch + 1}/{self._epochs}: loss {result.loss:.4f}, "
            f"accuracy {100 * result.accuracy:.2f} %, {result.seconds:.0f} s",
            highlight=False,
        )


@with_options
def train(
    dataset: Annotated[str, typer.Argument(help="A data set's name (grotta data list) or folder:PATH.")],
    domain: Annotated[str | None, typer.Option(help="Train on this domain of the data set, or several: a,b.")] = None,
    model: Annotated[str | None, typer.Option(help="Network; by default the data set's own.")] = None,
    weights: Annotated[str | None, typer.Option(help="File of weights to start from, or 'bundled'.")] = None,
    image_size: Annotated[int, typer.Option(help="Side of images read from files.")] = _IMAGE_SIZE,
    out: Annotated[Path, typer.Option(help="Folder for the model, its card and the checkpoint.")] = Path("models"),
    *,
    settings: RecipeOptions,
    note: Annotated[str, typer.Option(help="A remark for the model card.")] = "",
    half: Annotated[bool, typer.Option("--half", help="Store kernels as float16.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume from the last checkpoint.")] = False,
    device: Device = "cpu",
    data_root: DataRoot = None,
    json_output: Json = False,
) -> None:
    """Train a source model; a checkpoint after each epoch, a model card at the end.

    Example: grotta train pacs --domain photo --model mobilenet_v2 --weights mobilenet_v2-b0353104.pth --lr 0.01
    """
    request = Training(
        dataset=dataset,
        domains=tuple(comma_separated(domain) or ()),
        model=model or "",
        image_size=image_size,
        recipe=settings.recipe(),
        weights=weights,
    )
    file, card = train_source(request, out, note=note, half=half, resume=resume, device=device, data_root=data_root)
    line = json.dumps(card, allow_nan=False)
    typer.echo(line if json_output else f"{file}: accuracy {100 * card['accuracy']:.2f} %")


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is trained on what, and how."""

    dataset: str
    domains: tuple[str, ...]
    model: str
    image_size: int
    recipe: Recipe
    weights: str | None = None


def train_source(
    request: Training,
    out: Path,
    *,
    note: str = "",
    half: bool = False,
    resume: bool = False,
    device: str = "cpu",
    data_root: Path | None = None,
) -> tuple[Path, dict[str, Any]]:
    """Train a source model and write it with its card into ``out``; gives its file and its card."""
    import torch

    from grotta._files import require_writable, write
    from grotta.bench.inputs.check import check_device
    from grotta.bench.process import tune_allocator
    from grotta.commands.source_data import choose_split, open_source
    from grotta.models.card import card_markdown, make_card
    from grotta.models.registry import create_model
    from grotta.models.state_file import write_state
    from grotta.models.training import accuracy
    from grotta.models.training import train as train_model

    tune_allocator()
    recipe, domains = request.recipe, request.domains
    check_device(device)
    place = torch.device(device)
    source = open_source(request.dataset, domains, request.image_size, data_root)
    name = request.model or source.default_model
    if not name:
        raise ValueError(
            f"model must be chosen with --model (e.g. mobilenet_v2), as {source.name} has no default network"
        )
    checkpoint = out / f"{name}.checkpoint.pt"
    if checkpoint.exists() and not resume:
        raise ValueError(f"{checkpoint} exists already: continue with --resume, or choose another --out")
    split = choose_split(source, domains, recipe.seed)
    network, start = prepare_model(name, request.weights, source.num_classes, recipe.seed)
    network.to(place)
    require_writable(out)
    if resume and not checkpoint.exists():
        typer.echo(f"no checkpoint at {checkpoint}: starting over", err=True)
    with Reporter(f"Training {name}", recipe.epochs) as reporter:
        history = train_model(
            network,
            split.images,
            split.labels,
            split.measured,
            recipe,
            checkpoint=checkpoint,
            resume=resume,
            title=f"{name} on {split.data.trained_on} of {split.data.dataset}, start: {start}",
            on_epoch=reporter.epoch,
            on_step=reporter.step,
        )
    file = out / f"{name}.safetensors"
    write_state(file, network.state_dict(), half=half)
    card = make_card(
        name,
        split.data,
        recipe,
        history,
        accuracy=accuracy(create_model(name, file).to(place), *split.measured),
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        start=start,
        stored_as=f"safetensors, {'float16 kernels' if half else 'float32'}",
        command=command_line(
            request.dataset,
            name,
            recipe,
            half,
            domain=",".join(domains) or None,
            weights=Path(request.weights).name if request.weights else None,
            image_size=request.image_size if request.image_size != _IMAGE_SIZE else None,
        ),
        note=note,
    )
    write_state(file, network.state_dict(), {"card": json.dumps(card, allow_nan=False)}, half=half)
    write(file.with_suffix(".json"), (json.dumps(card, indent=2, allow_nan=False) + "\n").encode())
    write(file.with_suffix(".md"), card_markdown(card).encode())
    return file, card
