"""A process that takes tasks from its standard input and sends events to its standard output, until either closes."""

import os
import pickle
import signal
import sys

from grotta.bench.cell.task import CellTask
from grotta.bench.events import Event
from grotta.bench.execute.prepare import PrepareTask, prepare
from grotta.bench.execute.reporting import run_and_report

COMMAND = [sys.executable, "-P", "-c", "from grotta.bench.execute.worker import main; main()"]


def main() -> None:
    """Serve tasks; after each one's events comes ``None``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which decides when we end
    outbox = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # anything printed must not get mixed up with the events

    def send(event: Event | None) -> None:
        pickle.dump(event, outbox)
        outbox.flush()

    while True:
        try:
            task: CellTask | PrepareTask = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if isinstance(task, CellTask):
            run_and_report(task, send)
        else:
            prepare(task, send)
        send(None)
