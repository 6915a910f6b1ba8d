"""The command line: ``grotta COMMAND``. Each command is a module of :mod:`grotta.commands`."""

import codecs
import io
import sys
from collections.abc import Sequence

import typer

from grotta._errors import one_line
from grotta._version import __version__
from grotta.commands import bench, data, demo, report, reproduce, run, serve, train
from grotta.report.render.plain_text import ASCII

app = typer.Typer(
    name="grotta",
    help="Test-time adaptation that survives drifting images and drifting labels.",
    no_args_is_help=True,
    add_completion=True,
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
app.command()(demo.demo)


@app.callback(invoke_without_command=True)
def version_option(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Test-time adaptation that survives drifting images and drifting labels."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's error is one line on stderr, never a traceback.

    Exit codes: 0 done, 1 the job failed, 2 the call was wrong.
    """
    show_on_any_terminal()
    try:
        app(args=arguments)
    except KeyboardInterrupt:
        _fail("stopped", code=130)
    except (ValueError, TypeError) as error:
        _fail(error, code=2)
    except OSError as error:
        _fail(one_line(error), code=1)


def show_on_any_terminal() -> None:
    """Let stdout and stderr spell out characters that their encoding does not have, instead of failing."""
    codecs.register_error("grotta.spell", _spell)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="grotta.spell")


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(ASCII.get(character, "?") for character in characters), error.end


def _fail(error: object, code: int) -> None:
    typer.echo(f"grotta: {' '.join(str(error).split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
