"""``grotta serve``: many streams over HTTP, each adapting on its own."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from grotta._files import BusyError
from grotta.commands.run import parse_options


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(help="NAME=PATH: a bundled network, NETWORK@WEIGHTS or a file of grotta train; may be repeated."),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with the same settings.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; loopback by default.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on, 8000 by default; 0 picks a free one.")] = None,
    state: Annotated[Path | None, typer.Option(help="Folder where streams are kept; grotta-state by default.")] = None,
    method: Annotated[
        str | None, typer.Option(help="How streams adapt; grotta+ by default; source does not adapt.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings of the method; by default those that answer soonest, lite for grotta+.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="One setting of the method, KEY=VALUE; may be repeated.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the bearer token; or GROTTA_SERVE_TOKEN in the environment.")
    ] = None,
    strict_sequences: Annotated[
        bool | None, typer.Option("--strict-sequences", help="A stream must be started before it is used.")
    ] = None,
    shared: Annotated[bool | None, typer.Option("--shared", help="Several servers share the state folder.")] = None,
    lease_seconds: Annotated[float | None, typer.Option(help="Seconds until a silent server counts as dead.")] = None,
    advertise: Annotated[str | None, typer.Option(help="URL under which other servers reach this one.")] = None,
    max_streams: Annotated[int | None, typer.Option(help="Streams, in memory and on disk.")] = None,
    max_live: Annotated[int | None, typer.Option(help="Streams in memory; the others are on disk.")] = None,
    memory_mb: Annotated[int | None, typer.Option(help="Memory for the streams in memory, in MB.")] = None,
    disk_mb: Annotated[
        int | None, typer.Option(help="Size of the state folder beyond which no stream is added.")
    ] = None,
    idle_seconds: Annotated[float | None, typer.Option(help="Seconds after which an idle stream goes to disk.")] = None,
    checkpoint_steps: Annotated[int | None, typer.Option(help="Steps from one checkpoint to the next.")] = None,
    checkpoint_seconds: Annotated[float | None, typer.Option(help="Seconds from one checkpoint to the next.")] = None,
    queue: Annotated[int | None, typer.Option(help="Batches of a stream that may wait to be learned from.")] = None,
    max_waiting: Annotated[int | None, typer.Option(help="Requests that may wait for an answer.")] = None,
    answer_threads: Annotated[int | None, typer.Option(help="Threads that answer.")] = None,
    adapt_threads: Annotated[int | None, typer.Option(help="Threads that adapt.")] = None,
    max_body_mb: Annotated[int | None, typer.Option(help="Size of a request.")] = None,
    max_images: Annotated[int | None, typer.Option(help="Images in a request.")] = None,
    max_pixels: Annotated[int | None, typer.Option(help="Pixels of a JPEG or PNG picture.")] = None,
    drain_seconds: Annotated[
        float | None, typer.Option(help="Seconds for what is waiting when the server stops.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="json or text.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    show_frames: Annotated[
        bool | None, typer.Option("--show-frames/--hide-frames", help="Show the last frames on the page.")
    ] = None,
) -> None:
    """Serve models over HTTP (Open Inference Protocol v2), with a live page at the same address.

    Flags come first, then environment variables (`GROTTA_SERVE_PORT`), then the TOML file (`port = 8000`).

    Example: `grotta serve --model clothes=fashion_resnet8 --state /var/lib/grotta`
    """
    given: dict[str, Any] = {**locals()}
    flags = {key: value for key, value in given.items() if key not in ("model", "config", "option", "token_file")}
    flags |= {"models": model, "options": parse_options(option) if option else None}
    flags |= {"token_file": str(token_file) if token_file else None}
    from grotta.bench.process import tune_allocator

    settings_module, run = _import()
    tune_allocator()
    file = config or (Path(name) if (name := os.environ.get("GROTTA_SERVE_CONFIG")) else None)
    try:
        run(settings_module.gather(flags, os.environ, file))
    except BusyError as error:
        raise OSError(str(error)) from error


def _import() -> tuple[Any, Any]:
    try:
        from grotta.serve import settings
        from grotta.serve.run import serve as run
    except ModuleNotFoundError as error:
        raise ValueError(f"serving needs {error.name}: pip install 'grotta[serve]'") from error
    return settings, run
