"""`penstock`: dispatch of commands, error reports and exit codes."""

from __future__ import annotations

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

from penstock.core.error_report import format_error
from penstock.core.errors import Bug, OutputClosed, PenstockError, UserError
from penstock.core.known_secrets import conceal
from penstock.core.standard_streams import discard_output
from penstock.core.text import did_you_mean
from penstock.core.version import __version__

RUN, INSPECT, WRITE, OPTIONS = (
    Group(name, sort_key=order) for order, name in enumerate(("Run", "Inspect", "Write", "Options"))
)
START_HERE = """\
Get started:

  penstock quickstart                    run a sample pipeline
  penstock new files > pipeline.yaml     write a pipeline file
  penstock check pipeline.yaml           check the file
  penstock run pipeline.yaml             run the pipeline

Run penstock COMMAND --help for examples."""


class Command(NamedTuple):
    """A command: the function or `App` called `name` in the module `penstock.cli.NAME`.

    `help` is its line in `penstock --help`, which imports no command. `penstock NAME --help` is
    the docstring: a summary line, details, and two or three examples. A command imports heavy
    modules (Spark, Arrow, `penstock.app`) in its function.
    """

    name: str
    group: Group
    help: str


COMMANDS = (
    Command("run", RUN, "Run a pipeline."),
    Command("serve", RUN, "Serve the pipelines of a directory: an API for many pipelines."),
    Command("start", RUN, "Start a pipeline of a server."),
    Command("apply", RUN, "Apply a file to a pipeline of a server."),
    Command("versions", RUN, "List the versions of a pipeline of a server."),
    Command("rotate", RUN, "Encrypt the secrets of a server with a new key."),
    Command("rollback", RUN, "Apply an earlier version of a pipeline of a server."),
    Command("logs", RUN, "Print the log of a pipeline of a server."),
    Command("sql", RUN, "Start a SQL shell."),
    Command("status", RUN, "Show the state, metrics and last runs of a pipeline."),
    Command("stop", RUN, "Stop a running pipeline after its current batch."),
    Command("compact", RUN, "Combine the small files of the tables of sinks."),
    Command("deploy", RUN, "Print manifests, commands or an image for a cluster."),
    Command("quickstart", RUN, "Run a sample pipeline, without a file."),
    Command("test", RUN, "Run the test cases of pipeline files."),
    Command("streamling", RUN, "Run, check or validate a file of Streamling, by its command line."),
    Command("sdp", RUN, "Run cases of the handlers of stream-data-processor."),
    Command("new", WRITE, "Print a template of a pipeline file, with comments and a test case."),
    Command("list", WRITE, "List the installed sources, transforms, sinks and formats."),
    Command("describe", WRITE, "Describe a source, transform, sink or format."),
    Command("schema", WRITE, "Print the JSON Schema of pipeline files, for editors."),
    Command("lsp", WRITE, "Start the language server, for an editor."),
    Command("mcp", WRITE, "Start a server of tools for assistants, by the Model Context Protocol."),
    Command("convert", WRITE, "Print a pipeline as one SQL script or one YAML file."),
    Command("check", INSPECT, "Check a pipeline and report all errors."),
    Command("explain", INSPECT, "Explain a pipeline: columns, queries, state and guarantees."),
    Command("inspect", INSPECT, "Show the rows of a node, without access to sinks."),
    Command("tap", INSPECT, "Show rows of a node of a running pipeline."),
    Command("dead", INSPECT, "List, show, replay or remove dead letters."),
    Command("discover", INSPECT, "List the tables of a database, or print a pipeline of some."),
    Command("doctor", INSPECT, "Check whether the machine can run pipelines."),
    Command("completion", WRITE, "Print the completion script of a shell."),
)


OPTIONAL_VALUES = {"--fail-on-dead-letters": "1"}
"""The values of options that are written without a value."""


class UsageError(UserError):
    """An invalid command line."""

    default_code = "usage"


def make_app(requested: str | None = None) -> App:
    """Returns the command line. Imports `requested` for its help, and other commands on use."""
    app = App(
        name="penstock",
        help="Stream processing on Apache Spark, declared in a file.",
        help_epilogue=None if requested in {command.name for command in COMMANDS} else START_HERE,
        version=__version__,
        help_format="plaintext",
        group_commands=OPTIONS,
        default_parameter=Parameter(negative=(), show_default=False),
    )
    for order, command in enumerate(COMMANDS):
        app.command(
            f"penstock.cli.{command.name}:{command.name}",
            name=command.name,
            group=command.group,
            help=None if command.name == requested else command.help,
            sort_key=order,
        )
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code.

    0 is success, 1 a runtime error, 2 invalid files or an invalid command line, 3 a failure of an
    external system, 4 an error of the state directory, 130 Ctrl-C, 141 the end of the reader of
    the output, which has no message.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    words = [f"{w}={OPTIONAL_VALUES[w]}" if w in OPTIONAL_VALUES else w for w in words]
    try:
        return _run_command(words)
    except OutputClosed as error:
        return error.policy.exit_code
    finally:
        discard_output()


def _run_command(words: Sequence[str]) -> int:
    """Runs one command, reports its error and returns the exit code. Raises OutputClosed."""
    try:
        try:
            result = make_app(words[0] if words else None)(
                words, exit_on_error=False, print_error=False, result_action="return_value"
            )
        except CycloptsError as error:
            raise _usage_error(error, words) from error
        code = result if isinstance(result, int) else 0
        if code == 0:
            sys.stdout.flush()
        return code
    except OutputClosed:
        raise
    except PenstockError as error:
        print(format_error(error), file=sys.stderr)
        return error.policy.exit_code
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _bug(error)


def _usage_error(error: CycloptsError, words: Sequence[str]) -> UserError:
    chain = " ".join(["penstock", *(error.command_chain or ())])
    if isinstance(error, UnknownCommandError) and error.unused_tokens and error.app:
        word = error.unused_tokens[0]
        commands = [name for name in error.app if not name.startswith("-")]
        hint = did_you_mean(word, commands) or f"Run {chain} --help for the commands."
        return UsageError(f'"{chain}" has no command "{word}"', hint=hint)
    if isinstance(error, MissingArgumentError) and error.argument:
        if "--backfill" in words and chain == "penstock run":
            from penstock.cli.run import backfill_without_sink

            return backfill_without_sink(words[1:])
        name = error.argument.name
        message = f"{name} requires a value" if name.startswith("-") else f"{chain} requires {name}"
        return UsageError(message, hint=f"Run {chain} --help for examples.")
    return UsageError(str(error).strip(), hint=f"Run {chain} --help for examples.")


def _bug(error: Exception) -> int:
    """Reports an unexpected error and writes its traceback to a file."""
    bug = Bug(
        f"{type(error).__name__}: {_text(error)}",
        hint=f"Report the defect of Penstock. The traceback is {_save_traceback(error)}.",
    )
    print(format_error(bug), file=sys.stderr)
    return bug.policy.exit_code


def _text(error: Exception) -> str:
    """Returns the text of an error; of Py4J none after the end of the JVM."""
    try:
        return str(error)
    except Exception:
        return "no text"


def _save_traceback(error: Exception) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="penstock-", suffix=".txt", delete=False
        ) as file:
            file.write(conceal("".join(traceback.format_exception(error))))
    except OSError as write_error:
        return f"lost ({write_error.strerror})"
    return f"in {file.name}"
