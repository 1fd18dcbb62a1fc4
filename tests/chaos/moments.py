"""`penstock run`, killed by itself at a named moment: python moments.py MOMENT FILE.

A moment of Penstock is before or after a change to the disk: the driver is stopped exactly there.
A moment of Spark's or of a worker is when a file appears: the driver is stopped some milliseconds
later, wherever the others are by that time.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from watchfiles import Change as FileChange
from watchfiles import watch

from penstock.cli.main import main
from penstock.engine.checkpoints.offset_log import last_number


@dataclass(frozen=True)
class Change:
    """The `nth` time that a path is renamed to, or removed."""

    pattern: str
    when: Literal["before", "after"]
    nth: int = 1


@dataclass(frozen=True)
class Appearance:
    """The `nth` new file below a directory."""

    directory: str
    pattern: str
    nth: int = 1


BETWEEN_SINKS = Change("*/notes/.penstock/*/ledger.json", "before")
READINGS, MINUTES = (f"state/readings/checkpoints/{query}" for query in ("readings", "minutes"))
BEFORE_THE_LEDGER = Change("*/shares/.penstock/*/ledger.json", "before")
MOMENTS: dict[str, Change | Appearance] = {
    "before the plan is kept": Change("*/plan.json", "before"),
    "when offsets are written": Appearance(f"{READINGS}/offsets", "[0-9]*"),
    "when a sink's file has begun": Appearance("out/shares/.penstock", "*/[0-9]*/*.tmp"),
    "when state is written": Appearance(f"{MINUTES}/state", "*.delta"),
    "when a window's file is shown": Change("*/minutes/part-*", "after"),
    "before the ledger": BEFORE_THE_LEDGER,
    "after the ledger": Change("*/shares/.penstock/*/ledger.json", "after", 2),
    "after a file is shown": Change("*/shares/part-*", "after", 2),
    "between two sinks": BETWEEN_SINKS,
    "while a commit is written": Appearance(f"{READINGS}/commits", ".*"),
    "when a commit is written": Appearance(f"{READINGS}/commits", "[0-9]*"),
    "before dead letters are kept": Change("*/dead_letters/*.arrow", "before"),
    "when a spool is half removed": Change("*/spool/*/[0-9]*", "before"),
    "when a spool is removed": Change("*/spool/*/[0-9]*", "after"),
    "after the request to close the windows": Change("*/closing", "after"),
    "when the last windows are shown": Change("*/minutes/part-*", "after"),
    "before it is complete": Change("*/complete", "before"),
    "after it is complete": Change("*/complete", "after"),
}

WITHIN_A_FILE = "when a sink's file has begun"
"""The moment within a write of a worker."""
WITHIN_A_COMMIT = "while a commit is written"


def tear_files(directory: Path) -> None:
    """Leaves of the files of a batch what a kill of the workers within their writes leaves.

    A run that ends within this process, before the ledger, has written them.
    """
    files = [*(directory / "out/shares/.penstock").rglob("*.tmp")]
    assert files, "no file is written"
    for file in files:
        os.truncate(file, file.stat().st_size // 2)


def tear_commit(directory: Path) -> None:
    """Leaves of the last commit what a kill within Spark's write of it leaves.

    A run that ends within this process completes the write.
    """
    commits = directory / READINGS / "commits"
    number = last_number(commits)
    commit = commits / f"{number}"
    (commits / f".{number}.{uuid.uuid4()}.tmp").write_bytes(commit.read_bytes()[:2])
    commit.unlink()
    (commits / f".{number}.crc").unlink(missing_ok=True)
    for later in (commits.parent / "offsets").glob("[0-9]*"):
        if int(later.name) > (number or 0):
            later.unlink()


def die() -> None:
    """As `kill -9` does: nothing is tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def changes_watched(moment: Change, die: Callable[[], None]) -> Iterator[None]:
    """Within the block, calls `die` at a rename to a path, or at the removal of a directory."""
    seen = 0
    lock = threading.Lock()

    def at(path: Any, do: Callable[[], None], half: Callable[[], None] = lambda: None) -> None:
        nonlocal seen
        matches = fnmatch(os.fspath(path), moment.pattern)
        with lock:
            seen += matches
            now = matches and seen == moment.nth
        if now and moment.when == "before":
            half()
            die()
        do()
        if now and moment.when == "after":
            die()

    replace, rename, rmtree = os.replace, os.rename, shutil.rmtree

    def remove(path: Any, *args: Any, **kwargs: Any) -> None:
        if Path(path).exists():
            first = min((p for p in Path(path).rglob("*") if p.is_file()), default=None)
            at(path, lambda: rmtree(path, *args, **kwargs), lambda: first and first.unlink())

    with (
        patch("os.replace", lambda a, b, **kw: at(b, lambda: replace(a, b, **kw))),
        patch("os.rename", lambda a, b, **kw: at(b, lambda: rename(a, b, **kw))),
        patch("shutil.rmtree", remove),
    ):
        yield


@contextmanager
def appearance_watched(
    moment: Appearance, directory: Path, die: Callable[[], None]
) -> Iterator[None]:
    """Within the block, calls `die` in a thread when a new file appears below the directory.

    Events of the file system report a file that exists for a moment. They omit files of a new
    directory, which the search finds.
    """
    root = (directory / moment.directory).resolve()

    def matches(path: Path) -> bool:
        return path.is_relative_to(root) and fnmatch(str(path.relative_to(root)), moment.pattern)

    def files() -> set[Path]:
        return {path for path in root.rglob("*") if matches(path)}

    before, ended = files(), threading.Event()

    def look() -> None:
        found: set[Path] = set()
        for changes in watch(
            directory.resolve(), watch_filter=None, debounce=1, step=1, rust_timeout=10,
            yield_on_timeout=True, stop_event=ended, raise_interrupt=False,
        ):  # fmt: skip
            found |= {Path(path) for change, path in changes if change is FileChange.added}
            found |= files()
            if sum(map(matches, found - before)) >= moment.nth:
                die()
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


if __name__ == "__main__":
    name, file = sys.argv[1:]
    moment = MOMENTS[name]
    if isinstance(moment, Change):
        watched = changes_watched(moment, die)
    else:
        watched = appearance_watched(moment, Path(), die)
    with watched:
        sys.exit(main(["run", file]))
