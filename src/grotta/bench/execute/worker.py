"""A process that takes tasks from its standard input and sends events to its standard output, until either closes."""

import os
import pickle
import signal
import sys

from grotta.bench.events import Event
from grotta.bench.execute.task import CellTask, PrepareTask, attempt, prepare

COMMAND = [sys.executable, "-P", "-c", "from grotta.bench.execute.worker import main; main()"]


def main() -> None:
    """Serve tasks; after each one's events comes ``None``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it decides when we end
    outbox = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever anyone prints must not get between the events

    def send(event: Event | None) -> None:
        pickle.dump(event, outbox)
        outbox.flush()

    while True:
        try:
            task: CellTask | PrepareTask = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if isinstance(task, CellTask):
            attempt(task, send)
        else:
            prepare(task, send)
        send(None)
