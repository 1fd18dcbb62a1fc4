"""Commands that would start Spark, in the process of the tests and their Spark session."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest

from command_line import CommandLine
from penstock.cli.main import main
from penstock.engine.spark_session import session
from penstock.engine.spark_session.shared import reusing


def run_pytest(
    words: Sequence[str], directory: Path, cli: CommandLine
) -> subprocess.CompletedProcess[str]:
    """Runs pytest with the plugins of this environment. Its `penstock_spark` shares Spark."""
    assert cli.spark is not None
    out = io.StringIO()
    with (
        chdir(directory), redirect_stdout(out), reusing(cli.spark),
        _imported_anew(lambda name: name.startswith("test_")),
    ):  # fmt: skip
        code = pytest.main(["-p", "no:cacheprovider", *words])
    return subprocess.CompletedProcess(["pytest", *words], int(code), out.getvalue(), "")


def run_python(program: str, place: str, directory: Path, cli: CommandLine) -> str:
    """Runs a program of Python and returns its output. Its Spark session is that of the tests.

    The session is not closed: `tests/integration/test_session.py` starts and ends others.
    """
    out, names = io.StringIO(), {path.stem for path in directory.glob("*.py")}
    with (
        chdir(directory), redirect_stdout(out), _imported_anew(names.__contains__),
        patch.object(session, "create", lambda settings: cli.spark),
        patch.object(session, "close", lambda: None),
    ):  # fmt: skip
        sys.path.insert(0, str(directory))
        exec(compile(program, place, "exec"), {"__name__": "__main__"})
    return out.getvalue()


@contextmanager
def _imported_anew(is_of_page: Callable[[str], bool]) -> Iterator[None]:
    """Imports some modules anew in the context: those of a page may have names of ours."""
    path, modules = [*sys.path], _remove_modules(is_of_page)
    try:
        yield
    finally:
        sys.path[:] = path
        _remove_modules(is_of_page)
        sys.modules.update(modules)


def _remove_modules(is_removed: Callable[[str], bool]) -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in [*sys.modules] if is_removed(name)}


class RunInThread:
    """A `penstock run FILE ...` beside the next commands. Its output is written to a file."""

    def __init__(
        self, words: Sequence[str], output: Path, directory: Path, environment: Mapping[str, str],
        cli: CommandLine,
    ) -> None:  # fmt: skip
        self._directory, self._cli = directory, cli
        command, self._file, *options = words
        self._words = [command, str(directory / self._file), *options]
        self._context = ExitStack()
        file = self._context.enter_context(output.open("w"))
        self._context.enter_context(redirect_stdout(file))
        self._context.enter_context(redirect_stderr(file))
        self._context.enter_context(patch.dict(os.environ, environment))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the run, unless it has ended."""
        while self._thread.is_alive():
            self._cli(self._directory, "stop", self._file)
            self._thread.join(1)
        self._context.close()

    def _run(self) -> None:
        assert self._cli.spark is not None
        with reusing(self._cli.spark):
            main(self._words)
