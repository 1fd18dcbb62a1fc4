"""`penstock` as a function call: its verbs in this process, in the Spark session of the tests."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class CommandLine:
    """Runs `penstock WORD ...` without starting a process.

    Verbs that need Spark use `spark`; without `spark` they start their own. Signals, terminals,
    and the start and end of Java need a process: see `tests/terminal.py`.
    """

    spark: SparkSession | None = None

    def __call__(
        self, directory: Path, *words: str, environment: Mapping[str, str] = {}
    ) -> subprocess.CompletedProcess[str]:
        """Returns the exit code and the output of a command run in a directory."""
        from penstock.cli.main import main
        from penstock.engine.spark_session.shared import reusing

        out, err = _stream(), _stream()
        spark = nullcontext() if self.spark is None else reusing(self.spark)
        with (
            _working_directory(directory), patch.dict(os.environ, environment),
            redirect_stdout(out), redirect_stderr(err), spark,
        ):  # fmt: skip
            try:
                code = copy_context().run(main, words)  # a dialect is chosen for this call only
            except SystemExit as exit:
                code = int(exit.code or 0)
        return subprocess.CompletedProcess(["penstock", *words], code, _text(out), _text(err))


@pytest.fixture(scope="session")
def cli(penstock_spark: SparkSession) -> CommandLine:
    """`cli(directory, "run", "pipeline.yaml")` runs `penstock` in this process."""
    return CommandLine(penstock_spark)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    """Returns the output so far. The stream stays open: a thread of the run may still write."""
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def _working_directory(directory: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)
