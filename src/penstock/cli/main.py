"""`penstock`: finds the verb, and turns errors into reports and exit codes."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from typing import NamedTuple

from cyclopts import (
    App,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
)

from penstock import __version__
from penstock.core.errors import Bug, PenstockError, UserError, report
from penstock.core.text import did_you_mean

RUN, LOOK, WRITE, OPTIONS = (
    Group(name, sort_key=order)
    for order, name in enumerate(("Run it", "Look at it", "Write it", "Options"))
)
START_HERE = """\
Start here:

  penstock quickstart                    see records within seconds
  penstock new files > pipeline.yaml     write a first pipeline file
  penstock check pipeline.yaml           see all its mistakes at once
  penstock run pipeline.yaml             run it

penstock VERB --help shows examples."""


class Verb(NamedTuple):
    """A verb is the function or `App` called `name` in the module `penstock.cli.NAME`.

    `help` is its line in `penstock --help`, which imports no verb. `penstock NAME --help` shows
    the docstring: the same line, then what is worth knowing, then two or three examples.
    A verb imports what is heavy (Spark, Arrow, `penstock.app`) in its function.
    """

    name: str
    group: Group
    help: str


VERBS = (
    Verb("run", RUN, "Run a pipeline, to its end where its sources have one."),
    Verb("status", RUN, "Show whether a pipeline runs, and what it has done so far."),
    Verb("stop", RUN, "Stop a running pipeline after the batch under way."),
    Verb("quickstart", RUN, "Run a first pipeline, which needs no file."),
    Verb("test", RUN, "Run the cases of pipeline files: rows given, rows expected."),
    Verb("new", WRITE, "Print a first pipeline file, with comments and a test case."),
    Verb("list", WRITE, "List all sources, transforms, sinks and formats."),
    Verb("describe", WRITE, "Describe a source, transform, sink or format."),
    Verb("schema", WRITE, "Print the JSON Schema of pipeline files, for editors."),
    Verb("check", LOOK, "Check a pipeline, and tell all its mistakes at once."),
    Verb("explain", LOOK, "Explain a pipeline: columns, queries, state and guarantees."),
    Verb("inspect", LOOK, "Show the rows that flow at a node, without touching sinks."),
    Verb("dead", LOOK, "Look at records that failed, and replay or remove them."),
    Verb("doctor", LOOK, "See whether this machine can run pipelines."),
    Verb("completion", WRITE, "Print the script that lets a shell complete verbs and options."),
)


class UsageError(UserError):
    """A command line that Penstock does not understand."""

    default_code = "usage"


def make_app(asked: str | None = None) -> App:
    """The command line without any verb imported; the one that is `asked` for tells all its help.

    A verb is loaded when it is used.
    """
    app = App(
        name="penstock",
        help="Stream processing on Apache Spark, declared in a file.",
        help_epilogue=None if asked in {verb.name for verb in VERBS} else START_HERE,
        version=__version__,
        help_format="plaintext",
        group_commands=OPTIONS,
        default_parameter=Parameter(negative=(), show_default=False),
    )
    for order, verb in enumerate(VERBS):
        app.command(
            f"penstock.cli.{verb.name}:{verb.name}",
            name=verb.name,
            group=verb.group,
            help=None if verb.name == asked else verb.help,
            sort_key=order,
        )
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb. Returns the exit code: 0 ok, 1 runtime, 2 the user's files or command line,
    3 the outside world, 4 state; 130 after Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            result = make_app(words[0] if words else None)(
                words, exit_on_error=False, print_error=False, result_action="return_value"
            )
        except CycloptsError as error:
            raise _usage_error(error) from error
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
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


def _usage_error(error: CycloptsError) -> UsageError:
    chain = " ".join(["penstock", *(error.command_chain or ())])
    if isinstance(error, UnknownCommandError) and error.unused_tokens and error.app:
        word = error.unused_tokens[0]
        verbs = [name for name in error.app if not name.startswith("-")]
        hint = did_you_mean(word, verbs) or f"{chain} --help shows what there is"
        return UsageError(f'"{chain}" has no verb "{word}"', hint=hint)
    if isinstance(error, MissingArgumentError) and error.argument:
        message = f"{chain} needs {error.argument.name}"
        return UsageError(message, hint=f"{chain} --help shows examples")
    return UsageError(str(error).strip(), hint=f"{chain} --help shows examples")


def _bug(error: Exception) -> int:
    """An error that nobody foresaw: the traceback goes to a file, not to the terminal."""
    bug = Bug(
        f"{type(error).__name__}: {error}",
        hint=f"this is a mistake in Penstock; the traceback is {_kept_traceback(error)}",
    )
    print(report(bug), file=sys.stderr)
    return bug.conduct.exit_code


def _kept_traceback(error: Exception) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="penstock-", suffix=".txt", delete=False
        ) as file:
            traceback.print_exception(error, file=file)
    except OSError as unwritable:
        return f"lost ({unwritable.strerror})"
    return f"in {file.name}"
