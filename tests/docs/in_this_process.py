"""Commands that would start Spark, in the process of the tests and their Spark session."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest

from command_line import CommandLine
from penstock.cli.main import main
from penstock.engine.spark_session.shared import reusing


def run_pytest(
    words: Sequence[str], directory: Path, cli: CommandLine
) -> subprocess.CompletedProcess[str]:
    """Runs pytest with the plugins of this environment. Its `penstock_spark` shares Spark."""
    assert cli.spark is not None
    out = io.StringIO()
    with chdir(directory), redirect_stdout(out), reusing(cli.spark), _modules_of_this_process():
        code = pytest.main(["-p", "no:cacheprovider", *words])
    return subprocess.CompletedProcess(["pytest", *words], int(code), out.getvalue(), "")


@contextmanager
def _modules_of_this_process() -> Iterator[None]:
    """Imports test modules anew in the context: those of a page may have names of ours."""
    path, modules = [*sys.path], _remove_test_modules()
    try:
        yield
    finally:
        sys.path[:] = path
        _remove_test_modules()
        sys.modules.update(modules)


def _remove_test_modules() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.startswith("test_")]
    return {name: sys.modules.pop(name) for name in names}


class RunInThread:
    """A `penstock run FILE ...` beside the next commands. Its output is not read."""

    def __init__(
        self, words: Sequence[str], directory: Path, environment: Mapping[str, str],
        cli: CommandLine,
    ) -> None:  # fmt: skip
        self._directory, self._cli = directory, cli
        command, self._file, *options = words
        self._words = [command, str(directory / self._file), *options]
        self._environment = patch.dict(os.environ, environment)
        self._environment.start()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the run, unless it has ended."""
        while self._thread.is_alive():
            self._cli(self._directory, "stop", self._file)
            self._thread.join(1)
        self._environment.stop()

    def _run(self) -> None:
        assert self._cli.spark is not None
        with reusing(self._cli.spark):
            main(self._words)
