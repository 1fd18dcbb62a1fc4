"""Logs of runs: rotated files, read from the end."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.core.files.rotated_file import KEPT_FILES, RotatedFile, numbered
from penstock.server.supervision.run_log import LOG, LogFilter, last_error, read_log


def lines(*numbers: int, **facts: object) -> str:
    return "".join(json.dumps({"event": f"e{n}", "level": "info", **facts}) + "\n" for n in numbers)


def test_a_rotated_file_keeps_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / LOG
    with RotatedFile(path, max_bytes=200) as file:
        for number in range(40):
            file.write(lines(number))
    kept = [numbered(path, number) for number in range(KEPT_FILES)]
    assert all(each.stat().st_size <= 200 for each in kept)
    assert not numbered(path, KEPT_FILES).exists()
    assert path.stat().st_mode & 0o077 == 0
    found = [line["event"] for line in read_log(tmp_path, LogFilter())]
    assert found == [f"e{number}" for number in range(40 - len(found), 40)]
    assert len(found) > 10
    with RotatedFile(path, max_bytes=200) as file:
        file.write(lines(40))
    assert read_log(tmp_path, LogFilter(), limit=2)[-1]["event"] == "e40"


def test_lines_across_blocks_and_damaged_lines(tmp_path: Path) -> None:
    long = json.dumps({"event": "long", "text": "ä" * 30_000})
    (tmp_path / LOG).write_text(
        lines(1) + "not json\n" + long + "\n[1]\n\n" + lines(*range(2, 3000)) + '{"event": "cut'
    )
    found = [line["event"] for line in read_log(tmp_path, LogFilter(), limit=10_000)]
    assert found == ["e1", "long", *(f"e{number}" for number in range(2, 3000))]
    assert read_log(tmp_path / "absent", LogFilter()) == []


def test_filters(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text(
        lines(1, run="a", level="error", code="c", error="m") + lines(2, run="b", level="warning")
        + lines(3, run="a")
    )  # fmt: skip
    found = [line["event"] for line in read_log(tmp_path, LogFilter("a"))]
    assert found == ["e1", "e3"]
    found = [line["event"] for line in read_log(tmp_path, LogFilter(level="warning"))]
    assert found == ["e1", "e2"]
    assert [each["event"] for each in read_log(tmp_path, LogFilter(text="E3"))] == ["e3"]
    error = last_error(tmp_path, "a")
    assert (error and error.code, error and error.message) == ("c", "m")
    assert last_error(tmp_path, "b") is None
