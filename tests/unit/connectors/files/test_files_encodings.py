"""Ranges of files in encodings whose line ends are not bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.files import FilesSource, FilesSourceConfig, discovery, segments
from penstock.core.errors import Permanent, PlanError
from penstock.formats.text import Text, TextConfig
from penstock.sdk import Context, Read

VALUES = ["é☂", "\u0a0d\u0d0a", *map(str, range(300))]


def make(root: Path, encoding: str = "auto", **options: Any) -> FilesSource:
    config = FilesSourceConfig.model_validate({"path": str(root / "in" / "*.txt"), **options})
    source = FilesSource(config, Context(state=root / "state"))
    source.format = Text(TextConfig(encoding=encoding))
    source.columns = pa.schema([("value", pa.string())])
    return source


def put(root: Path, encoding: str) -> None:
    (root / "in").mkdir()
    text = "".join(f"{value}\n" for value in VALUES)
    (root / "in" / "a.txt").write_bytes(text.encode(encoding))


@pytest.mark.parametrize(
    ("encoding", "option", "divided"),
    [("utf-16", "auto", False), ("utf-16-le", "utf-16-le", False), ("utf-8-sig", "auto", True)],
)
def test_a_large_file_is_divided_only_at_line_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, option: str, divided: bool
) -> None:
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 500)
    monkeypatch.setattr(segments, "CHUNK_BYTES", 70)
    monkeypatch.setattr(discovery, "LARGE_FILE_BYTES", 1000)
    put(tmp_path, encoding)
    source = make(tmp_path, option)
    end = source.latest_offset({"files": 0})
    assert (end["files"] > 1) is divided
    rows = [
        (row["value"], row["position"])
        for partition in source.partitions({"files": 0}, end)
        for batch in source.read(partition, Read(metadata=("position",)))
        for row in batch.to_pylist()
    ]
    assert rows == [(value, number) for number, value in enumerate(VALUES, 1)]


def test_tail_of_another_encoding(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="tail requires the encoding auto"):
        make(tmp_path, "utf-16", tail=True).check()
    put(tmp_path, "utf-16")
    source = make(tmp_path, tail=True)
    with pytest.raises(Permanent, match="tail expects UTF-8") as raised:
        source.latest_offset({"files": 0})
    assert raised.value.hint is not None and "watch: true" in raised.value.hint
