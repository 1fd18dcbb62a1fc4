"""The nearest name: a guess only where a misspelling is likely."""

from __future__ import annotations

import pytest

from penstock.core.text import nearest, nearest_file


@pytest.mark.parametrize(
    ("name", "candidates", "expected"),
    [
        ("kafak", ["files", "kafka", "nats"], "kafka"),
        ("prnt", ["print", "parquet"], "print"),
        ("form", ["format", "from"], "from"),
        ("onError", ["on_error", "mode"], "on_error"),
        ("compress", ["compression", "path"], "compression"),
        ("bootstrap_severs", ["bootstrap_servers"], "bootstrap_servers"),
        ("at", ["ts", "id"], None),
        ("kind", ["id", "ts"], None),
        ("values", ["nulls", "of", "type", "weights"], None),
        ("time", ["time_start", "time_end"], None),
        ("hour", ["user"], None),
    ],
)
def test_nearest(name: str, candidates: list[str], expected: str | None) -> None:
    assert nearest(name, candidates) == expected


@pytest.mark.parametrize(
    ("name", "files", "expected"),
    [
        ("shop.yaml", ["wrong.yaml", "strong.yaml"], None),
        ("a.yaml", ["b.yaml"], None),
        ("shop.yml", ["shop.yaml"], "shop.yaml"),
        ("wrnog.yaml", ["wrong.yaml"], "wrong.yaml"),
        ("orders.csv", ["borders.txt"], None),
    ],
)
def test_nearest_file(name: str, files: list[str], expected: str | None) -> None:
    assert nearest_file(name, files) == expected
