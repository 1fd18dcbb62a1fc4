"""Logs of the runs of a pipeline: JSON lines, read from the end."""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.files.rotated_file import KEPT_FILES, numbered
from penstock.runtime.health import Reason

LOG = "log.jsonl"
OUTPUT = "output.txt"
"""The output of print sinks, and of processes that crash."""
LEVELS = ("debug", "info", "warning", "error", "critical")
MAX_LINE = 1024 * 1024
_BLOCK = 64 * 1024
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class LogFilter:
    """A selection of lines: of a run, of a level and above, with a text, from a time on."""

    run: str | None = None
    level: str = "debug"
    text: str | None = None
    since: str | None = None

    def accepts(self, line: dict[str, Any]) -> bool:
        if self.run is not None and line.get("run") != self.run:
            return False
        if _rank(line.get("level")) < _rank(self.level):
            return False
        return self.text is None or self.text.lower() in json.dumps(line).lower()


def read_log(directory: Path, filter: LogFilter, limit: int = 500) -> list[dict[str, Any]]:
    """Returns the last lines of the logs in a directory that a filter accepts, oldest first."""
    found: deque[dict[str, Any]] = deque()
    for line in _lines_from_end(directory):
        if filter.since and str(line.get("timestamp") or filter.since) < filter.since:
            break
        if filter.accepts(line):
            found.appendleft(line)
        if len(found) >= limit:
            break
    return list(found)


def last_error(directory: Path, run: str) -> Reason | None:
    """Returns the last error that a run has logged; None without one."""
    for line in read_log(directory, LogFilter(run, "error"), limit=1):
        return Reason(
            line.get("code", "failed"), line.get("error") or line["event"], line.get("hint"),
            line.get("query"),
        )  # fmt: skip
    return None


def _rank(level: object) -> int:
    return LEVELS.index(level) if level in LEVELS else LEVELS.index("info")


def _lines_from_end(directory: Path) -> Iterator[dict[str, Any]]:
    for number in range(KEPT_FILES):
        with suppress(OSError):  # rotated meanwhile
            path = numbered(directory / LOG, number)
            yield from filter(None, map(_parsed, _raw_lines_from_end(path)))


def _raw_lines_from_end(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file from its end. A line longer than `MAX_LINE` is cut."""
    with path.open("rb") as file:
        position, rest = file.seek(0, 2), b""
        while position:
            size = min(_BLOCK, position)
            position -= size
            file.seek(position)
            (*lines,) = (file.read(size) + rest).split(b"\n")
            rest = lines[0][:MAX_LINE]
            yield from (line for line in reversed(lines[1:]) if line)
        if rest:
            yield rest


def _finite(text: str) -> float | str:
    return value if math.isfinite(value := float(text)) else text


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Returns a line as JSON that every program reads: Unicode, and numbers that are finite."""
    try:
        found = json.loads(line, parse_constant=str, parse_float=_finite)
        if _SURROGATE.search(line):
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
