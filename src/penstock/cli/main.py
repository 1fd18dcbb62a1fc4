"""`penstock`: finds the verb, and turns errors into reports and exit codes."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App, CycloptsError, Parameter

from penstock import __version__
from penstock.core.errors import Bug, PenstockError, UserError, report

VERBS = ("run",)

USAGE_ERROR = UserError.conduct.exit_code


def make_app() -> App:
    """The command line without any verb imported: each is loaded when it is asked for."""
    app = App(
        name="penstock",
        help=__doc__,
        version=__version__,
        help_format="markdown",
        default_parameter=Parameter(negative=()),
    )
    for verb in VERBS:
        app.command(f"penstock.cli.{verb}:{verb}")
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb. Returns the exit code: 0 ok, 1 runtime, 2 the user's files, 3 the outside
    world, 4 state."""
    try:
        result = make_app()(
            list(argv) if argv is not None else None,
            exit_on_error=False,
            print_error=True,
            result_action="return_value",
        )
        return result if isinstance(result, int) else 0
    except CycloptsError:
        return USAGE_ERROR
    except PenstockError as error:
        print(report(error), file=sys.stderr)
        return error.conduct.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        return _bug(error)


def _bug(error: Exception) -> int:
    """An error that nobody foresaw: the traceback goes to a file, not to the terminal."""
    with tempfile.NamedTemporaryFile("w", prefix="penstock-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    bug = Bug(
        f"{type(error).__name__}: {error}",
        hint=f"this is a mistake in Penstock; the traceback is in {Path(file.name)}",
    )
    print(report(bug), file=sys.stderr)
    return bug.conduct.exit_code
