"""Run a server until it is told to stop."""

import gc
import socket
import sys

import prometheus_client
import torch
import uvicorn

from grotta.serve.app import make_app
from grotta.serve.logs import set_up
from grotta.serve.settings import Settings

SWITCH_SECONDS = 0.0005  # how long a thread keeps the interpreter: short, for answers beside learners


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; then finish what was begun, save every stream and return."""
    set_up(settings.log_format, settings.log_level)
    torch.set_num_threads(1)  # threads for requests, not for operators: answers and learners do not wait for each other
    sys.setswitchinterval(SWITCH_SECONDS)
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each
    app = make_app(settings)
    app.state.service.ownership.take()  # before anything listens: an error here is the user's to read
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
        timeout_keep_alive=75,  # longer than proxies keep theirs, so that it is never the server that closes one in use
        server_header=False,
        lifespan="on",
        backlog=1024,
    )
    gc.collect()
    gc.freeze()  # what lives as long as the process: looking through it took a fifth of a second, in an answer
    server = _Server(config)
    server.run()
    if not server.started:
        raise OSError("the server could not start: see the log above")


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, and say where the server is reached."""
        await super().startup(sockets)
        if self.started and self.servers:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self.config.app.state.service.events.note("listening", url=f"http://{host}:{port}")  # type: ignore[union-attr]
