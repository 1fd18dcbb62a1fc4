"""`penstock sql`: an interactive shell for SQL scripts."""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from penstock.cli.options import Overrides
from penstock.core.deferred_pandas import defer_pandas
from penstock.core.errors import PenstockError

if TYPE_CHECKING:
    from penstock.cli.shell.shell import Shell

Scripts = Annotated[
    list[Path],
    Parameter(
        metavar="FILE",
        help="Scripts with definitions. Their queries do not run.",
        negative=(),
        consume_multiple=True,
    ),
]


def sql(files: Scripts = [], /, *, overrides: Overrides = ()) -> int:  # noqa: B006
    """Start a SQL shell: define tables and views, and see the rows of queries as they come.

    Ctrl-C ends a query, Ctrl-D the shell. A query reads its sources from their `start` on, and
    keeps no state after its end. Paths are relative to the working directory, also those of files.
    Without a terminal the statements of standard input are executed.
    A wrong statement is not executed, nor are statements that use its definition; all others are.
    The exit code is that of the first error.

      penstock sql
      penstock sql tables.sql
      echo "SELECT 1 + 1;" | penstock sql
    """
    from penstock.cli.shell.shell import Shell
    from penstock.engine.workers.scratch import Scratch

    defer_pandas()
    with closing(Scratch()) as scratch:
        shell = Shell(Future(), scratch.path, overrides)
        for file in files:
            _load(shell, file)
        if not sys.stdin.isatty():
            text = sys.stdin.read()
            with _session(shell):
                return _execute_input(shell, text)
        print("Enter statements with ; at the end, \\? for the commands, Ctrl-D to leave.")
        while not _converse(shell):
            shell.spark = Future()
        return 0


def _execute_input(shell: Shell, text: str) -> int:
    """Executes the text of standard input. Returns the exit code."""
    from penstock.cli.shell.commands import EndOfShell

    try:
        return respond(shell, text)
    except EndOfShell as end:
        return end.code


def _load(shell: Shell, file: Path) -> None:
    from penstock.core.text import plural
    from penstock.spec.documents.files import read_text

    queries = shell.load(read_text(file), str(file))
    if queries:
        print(f"{file}: {plural(queries, 'query', 'queries')} not run", file=sys.stderr)


def _converse(shell: Shell) -> bool:
    """Executes the input of a user on one session. Returns whether the user has left.

    Otherwise the JVM of the session has ended.
    """
    from penstock.cli.shell.warm_up import warm_up
    from penstock.core.error_report import format_error

    try:
        with _session(shell), warm_up(shell.spark, shell.directory):
            _respond_to_input(shell)
    except PenstockError as error:
        if error.code != "java-ended":
            raise
        error.hint = "Enter the query again. If memory was exhausted, enter SET memory first."
        print(format_error(error), file=sys.stderr, flush=True)
        return False
    return True


def _respond_to_input(shell: Shell) -> None:
    """Executes the input of a user, until Ctrl-D."""
    from penstock.cli.shell.commands import EndOfShell
    from penstock.cli.shell.prompt import Prompt

    prompt = Prompt(shell)
    while True:
        try:
            respond(shell, prompt.read())
        except KeyboardInterrupt:
            continue
        except (EOFError, EndOfShell):
            return


def respond(shell: Shell, text: str) -> int:
    """Executes commands and statements. Prints errors. Raises EndOfShell.

    Returns the exit code: that of the first error.
    """
    from penstock.cli.shell.commands import EndOfShell
    from penstock.cli.shell.execute import execute
    from penstock.core.error_report import format_error

    code = 0
    try:
        for error in execute(shell, text):
            sys.stdout.flush()
            print(format_error(error), file=sys.stderr, flush=True)
            code = code or error.policy.exit_code
    except EndOfShell as end:
        end.code = code
        raise
    return code


@contextmanager
def _session(shell: Shell) -> Iterator[None]:
    """Starts the session of a shell in the background, which ends with the block."""
    from penstock.engine.spark_session.memory import choose_resources
    from penstock.engine.spark_session.session import session
    from penstock.engine.spark_session.settings import cores
    from penstock.runtime.session import session_settings

    runtime, spark = shell.runtime(), shell.spark
    settings = session_settings(runtime, choose_resources(runtime, cores()), None, "minutes")

    def start(stack: ExitStack) -> None:
        try:
            spark.set_result(stack.enter_context(session(settings)))
        except BaseException as error:
            spark.set_exception(error)

    context = contextvars.copy_context()
    with ExitStack() as stack:
        thread = threading.Thread(target=context.run, args=(start, stack), name="penstock-session")
        thread.start()
        try:
            yield
        finally:
            thread.join()
