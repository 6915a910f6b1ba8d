"""``grotta demo``: a server, three simulated cameras and the live page, in one command."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

_HOST = "127.0.0.1"
_START_SECONDS = 60


def demo(
    port: Annotated[int, typer.Option(help="Port of the server and its page; 0 picks a free one.")] = 0,
    method: Annotated[str, typer.Option(help="How the cameras' streams adapt.")] = "grotta+",
    preset: Annotated[str, typer.Option(help="Settings of the method.")] = "paper",
    seconds: Annotated[float, typer.Option(help="Stop after this many seconds; 0 runs until interrupted.")] = 0,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Watch a frozen model and an adapting one drift apart, on three simulated cameras; nothing to download.

    The parking cameras join them if a data root has their pictures and the network of `grotta reproduce parking`.

    Example: `grotta demo`
    """
    if port < 0 or seconds < 0:
        raise ValueError(f"port and seconds must be at least 0, got {port} and {seconds}")
    try:
        from grotta.serve.demo.play import play
        from grotta.serve.demo.scenes import make_show
    except ModuleNotFoundError as error:
        raise ValueError(f"the demo needs {error.name}: pip install 'grotta[serve]'") from error
    import torch

    torch.set_num_threads(1)
    if threading.current_thread() is threading.main_thread():  # SIGTERM stops everything too, not this process alone
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    show = make_show()
    number = port or _free_port()
    with _server(number, method, preset, show.write_settings) as address:
        typer.echo(f"Live page: {address}/   (Ctrl-C stops everything)")
        if open_page:
            import webbrowser

            webbrowser.open(f"{address}/")
        stop = threading.Event()
        if seconds:
            timer = threading.Timer(seconds, stop.set)
            timer.daemon = True  # an interrupt need not wait for it
            timer.start()
        with contextlib.suppress(KeyboardInterrupt):
            play(_HOST, number, show.scenes, stop)


@contextlib.contextmanager
def _server(port: int, method: str, preset: str, write_settings: Callable[[Path], None]) -> Iterator[str]:
    """A server in a process of its own, with a state folder that goes with it."""
    address = f"http://{_HOST}:{port}"
    words = [sys.executable, "-m", "grotta", "serve", "--port", str(port)]
    words += ["--method", method, "--preset", preset, "--log-format", "text", "--log-level", "warning"]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GROTTA_SERVE_")}
    with tempfile.TemporaryDirectory(prefix="grotta-demo-") as folder:
        write_settings(Path(folder) / "serve.toml")
        words += ["--config", str(Path(folder) / "serve.toml"), "--state", str(Path(folder) / "state")]
        process = subprocess.Popen(words, env=clean)
        try:
            _wait_for(address, process)
            yield address
        finally:
            process.terminate()
            process.wait()


def _wait_for(address: str, process: "subprocess.Popen[bytes]") -> None:
    import urllib.request  # slow to import, and every command is imported

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise OSError(f"the server ended with code {process.returncode}: see above")
        with contextlib.suppress(OSError), opener.open(f"{address}/v2/health/ready", timeout=5):
            return
        time.sleep(0.1)
    raise OSError(f"the server did not start within {_START_SECONDS} seconds")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
