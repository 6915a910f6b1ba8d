"""The command line: ``grotta COMMAND``. Each command is a module of :mod:`grotta.commands`."""

import sys
from collections.abc import Sequence

import typer

from grotta._version import __version__
from grotta.bench.execute.process import tune_allocator
from grotta.bench.execute.task import one_line
from grotta.commands import bench, data, report, reproduce, run, serve, train

app = typer.Typer(
    name="grotta",
    help="Test-time adaptation that survives drifting images and drifting labels.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(bench.bench)
app.command()(run.run)
app.command()(reproduce.reproduce)
app.command()(report.report)
app.add_typer(data.app, name="data", help="Data sets: what is here, how to get the rest, corruptions of your own.")
app.command()(train.train)
app.command()(serve.serve)


@app.callback(invoke_without_command=True)
def version_option(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """Test-time adaptation that survives drifting images and drifting labels."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an error of the user's is one line on stderr, never a traceback.

    Exit codes: 0 done, 1 the job failed, 2 the call was wrong.
    """
    tune_allocator()
    try:
        app(args=arguments)
    except KeyboardInterrupt:
        _fail("stopped", code=130)
    except (ValueError, TypeError) as error:
        _fail(error, code=2)
    except OSError as error:
        _fail(one_line(error), code=1)


def _fail(error: object, code: int) -> None:
    typer.echo(f"grotta: {' '.join(str(error).split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
