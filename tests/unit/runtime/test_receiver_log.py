"""The log of a receiver process is bounded."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from penstock.runtime.receiving.receiver_log import RepetitionFilter, rotate


def passed(count: int, message: str = "error of %s", *arguments: object) -> list[str]:
    """Returns the messages that pass the filter."""
    filter_ = RepetitionFilter()
    records = [
        logging.LogRecord("server", logging.ERROR, "", 0, message, arguments, None)
        for _ in range(count)
    ]
    return [record.getMessage() for record in records if filter_.filter(record)]


def test_repeated_messages_are_counted() -> None:
    assert passed(5_000, "error of %s", "127.0.0.1") == [
        *["error of 127.0.0.1"] * 5,
        *(f"error of 127.0.0.1 ({2**power} times)" for power in range(3, 13)),
    ]


def test_different_messages_pass() -> None:
    filter_ = RepetitionFilter()
    for number in range(5_000):
        record = logging.LogRecord("server", logging.ERROR, "", 0, f"m{number}", (), None)
        assert filter_.filter(record)


def test_a_large_log_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "receiver.log"
    with path.open("ab") as log:
        log.write(b"a" * 900)
        log.flush()
        rotate(path, log.fileno(), 1_000)
        assert path.stat().st_size == 900
        log.write(b"b" * 900)
        log.flush()
        rotate(path, log.fileno(), 1_000)
        os.write(log.fileno(), b"c")
    assert path.read_bytes() == b"c"
    assert (tmp_path / "receiver.log.1").read_bytes() == b"a" * 100 + b"b" * 900
