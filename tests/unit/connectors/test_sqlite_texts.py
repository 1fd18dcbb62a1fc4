"""Texts of SQLite that are not UTF-8."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from database_tables import read
from penstock.connectors.sqlite import SqliteSource, connection


@pytest.mark.parametrize("place", [0, 4, 9])
def test_rows_around_a_text_that_is_not_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """Each row is read once, whichever part of the rows has the text, which is a dead letter."""
    monkeypatch.setattr(connection, "FETCHED", 3)
    path = str(tmp_path / "shop.db")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)", ((each, f"é{each}") for each in range(10)))
        db.execute("UPDATE t SET s = CAST(x'ff61' AS TEXT) WHERE id = ?", (place,))
    source = SqliteSource(SqliteSource.config_type(path=path, table="t"))
    source.columns = source.infer_schema()
    with closing(source):
        rows, errors, _ = read(source)
    others = [each for each in range(10) if each != place]
    assert rows == [{"id": each, "s": f"é{each}"} for each in others]
    assert len(errors) == 1
