"""The command line: `bertsmith`, and `python -m bertsmith`."""

import atexit
import contextlib
import gc
import os
import sys
from typing import Annotated

import typer

from bertsmith import __version__
from bertsmith.cli import (
    attention_commands,
    compare_commands,
    exchange_commands,
    export_commands,
    finetune_commands,
    plan_commands,
    predict_commands,
    profile_commands,
    text_commands,
    train_commands,
    use_commands,
)
from bertsmith.cli.clock import command_begins
from bertsmith.foundation.errors import BertsmithError, InputError, Stopped

app = typer.Typer(
    name="bertsmith",
    help="Make, adapt and use BERT encoders on your own text, on the machine you have.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
train_commands.register(app)
finetune_commands.register(app)
predict_commands.register(app)
text_commands.register(app)
use_commands.register(app)
attention_commands.register(app)
exchange_commands.register(app)
export_commands.register(app)
plan_commands.register(app)
profile_commands.register(app)
compare_commands.register(app)


def _print_version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool | None, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = None,
) -> None:
    pass


def run() -> None:
    """Run the command line and end the process with its exit code."""
    command_begins()
    # Threads that wait for work by spinning make a step ten times slower once another program wants their core. It must
    # be said before torch is loaded; what a person has set stays.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    for stream in (sys.stdout, sys.stderr):
        # Text is UTF-8 whatever the terminal's code page says.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")  # pyright: ignore[reportAttributeAccessIssue]
    # A process that ends looks for garbage among all that torch has loaded, which takes most of a second. It does not
    # look at what is frozen.
    atexit.register(gc.freeze)
    sys.exit(_exit_code())


def _exit_code() -> int:
    try:
        app(standalone_mode=True)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):
            return _reader_has_gone()
        return ended.code if isinstance(ended.code, int) else 1
    except InputError as error:
        _say(f"error: {error}")
        return 2
    except Stopped as stopped:
        _say(str(stopped))
        return 3
    except KeyboardInterrupt:
        _say("Stopped. Nothing half-written is left: the same command goes on with what was finished, or begins anew.")
        return 3
    except BertsmithError as error:
        _say(f"error: {error}")
        return 1
    except BrokenPipeError:
        return _reader_has_gone()
    return 0


def _reader_has_gone() -> int:
    """The reader of our output has gone, as `head` does: nothing is wrong, and what is still buffered goes nowhere."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    return 0


def _say(message: str) -> None:
    # Where the terminal has gone, so has whoever would read this.
    with contextlib.suppress(OSError):
        typer.echo(message, err=True)
