"""Logs with stack traces: records of several lines, from a growing file to files of text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command_line import CommandLine

pytestmark = pytest.mark.spark

SCRIPT = r"""
SET name = 'log';
CREATE TABLE log (value TEXT, line BIGINT METADATA FROM 'position') WITH (
  connector = 'files', path = 'in/app.log*', tail = TRUE, idle_timeout = INTERVAL '1 hour',
  format = 'text', 'text.record_start' = r'^\d{4}-'
);
CREATE TABLE errors (value TEXT) WITH (
  connector = 'files', path = 'out', format = 'text', 'text.record_start' = '^[0-9]+: '
);
INSERT INTO errors SELECT concat(line, ': ', value) FROM log WHERE value LIKE '% ERROR %';
"""


def append(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


def test_records_of_a_growing_log(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "in").mkdir()
    log = tmp_path / "in" / "app.log"
    (tmp_path / "log.sql").write_text(SCRIPT)

    def run() -> list[str]:
        """Runs to the end of the log. Returns the new files of text."""
        before = set((tmp_path / "out").glob("*.txt"))
        done = cli(tmp_path, "run", "log.sql", "--until-caught-up")
        assert done.returncode == 0, done.stderr
        return [path.read_text() for path in set((tmp_path / "out").glob("*.txt")) - before]

    append(log, b"2024-01 INFO a\n2024-02 ERROR b\n at x\n\n")
    assert run() == []
    append(log, b" at y\n2024-03 ERROR \xff\n at z\n2024-04 ERROR c\n")
    assert run() == ["2: 2024-02 ERROR b\n at x\n\n at y\n"]
    listed = cli(tmp_path, "dead", "list", "log.sql")
    assert "app.log:6" in listed.stdout and "UTF-8" in listed.stdout
    log.rename(tmp_path / "in" / "app.log.1")
    append(log, b" the rest\n2024-05 INFO d\n2024-06 INFO e\n")
    assert run() == []
    os.utime(tmp_path / "in" / "app.log.1", (0, 0))
    assert run() == ["8: 2024-04 ERROR c\n"]
