"""A run in this process that ends at a named moment as if it had been killed there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from moments import Appearance, Change, appearance_watched, changes_watched
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink",
    "shutil.rmtree",
}  # fmt: skip


class Killed(Exception):
    """The process ends here."""


@dataclass
class Death:
    """A kill of this process. Once dead, the process changes no file below the directory.

    Handlers and `finally` blocks run after an exception but not after a kill, so their changes
    must have no effect. Python's audit events report every change except those of C++ code.
    """

    directory: Path
    dead: bool = False

    def die(self) -> NoReturn:
        self.end()
        raise Killed

    def end(self) -> None:
        """Ends the process at its next change."""
        self.dead = True

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        """Raises Killed before a change of a dead process."""
        if self.dead and self._changes(event, args):
            raise Killed

    def _changes(self, event: str, args: tuple[Any, ...]) -> bool:
        if event != "open" and event not in _CHANGES:
            return False
        if event == "open" and not (args[2] or 0) & _WRITES:
            return False
        paths = [args[0], args[1]] if event == "os.rename" else [args[0]]
        return any(
            isinstance(path, str | os.PathLike)
            and Path(os.fspath(path)).is_relative_to(self.directory)
            for path in paths
        )


_living: Death | None = None
_hooked = False


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if _living is not None:
        _living.audit(event, args)


@contextmanager
def mortal(directory: Path) -> Iterator[Death]:
    """Yields a death that may occur within the block."""
    global _living, _hooked
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True
    _living = Death(directory)
    try:
        yield _living
    finally:
        _living = None


def run_until_killed(
    file: Path,
    moment: Change | Appearance,
    spark: SparkSession,
    options: RunOptions | None = None,
) -> bool:
    """Runs a pipeline until the moment. Returns False if the run ended before.

    The queries have stopped when this function returns. The run leaves nothing in memory.
    """
    session = spark.newSession()
    with mortal(file.parent) as death, _watched(moment, death):
        with suppress(Exception):
            app.run(file, spark=session, options=options or RunOptions())
        for query in session.streams.active:
            query.stop()
    return death.dead


def _watched(moment: Change | Appearance, death: Death) -> AbstractContextManager[None]:
    if isinstance(moment, Change):
        return changes_watched(moment, death.die)
    return appearance_watched(moment, death.directory, death.end)
