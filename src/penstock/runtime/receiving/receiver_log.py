"""The log of a receiver process: its size, and repeated messages of libraries."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from pathlib import Path

MAX_LOG_BYTES = 8 << 20
"""The size at which a log is rotated. One older file is kept."""
_CHECK_INTERVAL = 1.0
_MAX_REPETITIONS = 5
_MAX_MESSAGES = 1000
_STDERR = 2


class RepetitionFilter(logging.Filter):
    """A filter for the first messages of a kind, and then for those whose count is a power of two.

    Records of the same logger, template and exception are of the same kind.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        key = record.name, str(record.msg)[:200], kind.__name__ if kind else ""
        if key not in self._counts and len(self._counts) >= _MAX_MESSAGES:
            self._counts.clear()
        self._counts[key] += 1
        count = self._counts[key]
        if count <= _MAX_REPETITIONS:
            return True
        if count & (count - 1):
            return False
        record.msg, record.args = f"{record.getMessage()} ({count} times)", None
        record.exc_info = record.exc_text = None
        return True


def bound_log(path: Path) -> None:
    """Filters repetitions in the log of this process, and rotates the log in the background.

    `path` is the file of standard error, opened for appending.
    """
    handler = logging.StreamHandler()
    handler.addFilter(RepetitionFilter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    threading.Thread(target=_rotate_forever, args=(path,), daemon=True).start()


def rotate(path: Path, descriptor: int, max_size: int) -> None:
    """Moves the end of a log to `NAME.1` and empties the log if it exceeds `max_size`.

    `descriptor` is the file of `path`, opened for appending: the writers keep it.
    """
    size = os.fstat(descriptor).st_size
    if size <= max_size:
        return
    with path.open("rb") as log:
        log.seek(max(0, size - max_size))
        path.with_name(f"{path.name}.1").write_bytes(log.read(max_size))
    os.ftruncate(descriptor, 0)


def _rotate_forever(path: Path) -> None:
    pause = threading.Event()
    while not pause.wait(_CHECK_INTERVAL):
        try:
            rotate(path, _STDERR, MAX_LOG_BYTES)
        except OSError:
            continue
