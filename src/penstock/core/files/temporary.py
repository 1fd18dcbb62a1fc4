"""Temporary directories whose files other processes write."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

REMOVAL_SECONDS = 5.0
"""The time in which the tasks of a stopped query end."""


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """Yields a directory that is removed at the end of the block.

    A task of a stopped query may still write a file. The removal is repeated until it has ended.
    """
    with TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        yield directory
    deadline = time.monotonic() + REMOVAL_SECONDS
    while directory.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
        shutil.rmtree(directory, ignore_errors=True)
