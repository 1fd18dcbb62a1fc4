"""Lookups of keys in one process: distinct keys, chunks, the cache, clients and bad rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import StateError
from penstock.engine.driver_files.server import FileServer
from penstock.engine.lookups.key_lookup import KeyLookup, OpenTable
from penstock.engine.lookups.lookup_cache import LookupCache
from penstock.engine.lookups.served_lookup import serve_lookup
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk import Capability, Config, LookupSource, Permanent, Read, Rejected, Transient

ROWS = pa.schema([("shop", pa.string()), ("id", pa.int64()), ("name", pa.string())])
STORED: dict[tuple[str, int], str] = {}
CALLS: list[list[tuple[Any, ...]]] = []
CLIENTS: list[Client] = []


class Client:
    """A client that fails with an error."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.closed = False
        CLIENTS.append(self)

    def close(self) -> None:
        self.closed = True


class Shops(LookupSource[Config]):
    """The rows of `STORED`, of two keys a call."""

    capabilities = frozenset({Capability.LOOKUP_BY_KEY, Capability.ROWS})
    keys_per_lookup = 2

    def open(self) -> Client:
        return Client()

    def lookup(self, client: Client, keys: pa.RecordBatch, read: Read) -> pa.RecordBatch:
        if client.error is not None:
            raise client.error
        asked = [tuple(row.values()) for row in keys.to_pylist()]
        CALLS.append(asked)
        for index, key in enumerate(asked):
            if STORED.get(key) == "bad":
                read.reject(b"bad", str(key), index, Rejected("made up"))
        names = [(*key, STORED[key]) for key in reversed(asked) if STORED.get(key, "bad") != "bad"]
        found = [dict(zip(ROWS.names, row, strict=True)) for row in names]
        return pa.RecordBatch.from_pylist(found, ROWS)


@pytest.fixture(autouse=True)
def stored() -> None:
    STORED.clear()
    STORED.update({("a", 1): "one", ("a", 2): "two", ("b", 1): "three"})
    CALLS.clear()
    CLIENTS.clear()


def open_table(tmp_path: Path, ttl: float = 0.0, max_bytes: int = 1 << 20) -> OpenTable:
    source = Shops(Config())
    source.columns, source.primary_key = ROWS, ("shop", "id")
    spool = Spool("p", "q", "shops", "decode", directory=str(tmp_path))
    return OpenTable(KeyLookup(source, ROWS, {}, spool, ttl, max_bytes, "run"))


Key = tuple[str | None, int | None]


def look_up(table: OpenTable, batch: int, *keys: Key) -> list[Any]:
    return counted_look_up(table, batch, *keys)[0]


def counted_look_up(table: OpenTable, batch: int, *keys: Key) -> tuple[list[Any], int]:
    """Returns the name of each row, and the number of dead letters."""
    dead_letters = table.lookup.spool.begin(batch, 0)
    table.begin(dead_letters, isolated=False)
    rows = [dict(zip(("shop", "id"), key, strict=True)) for key in keys]
    found = table.rows_of(pa.RecordBatch.from_pylist(rows, table.lookup.keys))
    return [row and row["name"] for row in found.to_pylist()], dead_letters.count


def asked() -> list[tuple[Any, ...]]:
    return [key for call in CALLS for key in call]


def test_distinct_keys_are_looked_up_in_chunks(tmp_path: Path) -> None:
    keys: Sequence[tuple[str | None, int | None]] = [
        ("a", 1), ("a", 2), ("a", 1), (None, 1), ("a", None), ("b", 1), ("c", 1), ("c", 1),
    ]  # fmt: skip
    found = look_up(open_table(tmp_path), 1, *keys)
    assert found == ["one", "two", "one", None, None, "three", None, None]
    assert CALLS == [[("a", 1), ("a", 2)], [("b", 1), ("c", 1)]]
    assert look_up(open_table(tmp_path), 1, (None, None)) == [None]
    assert len(CALLS) == 2


@pytest.mark.slow
def test_a_table_that_the_driver_serves(tmp_path: Path) -> None:
    server = FileServer(tmp_path, "127.0.0.1", "127.0.0.1")
    try:
        table = open_table(tmp_path)
        served = serve_lookup(server, tmp_path / "shops", table.lookup.source)
        table = OpenTable(replace(table.lookup, served=served))
        STORED["b", 2] = "bad"
        keys: Sequence[Key] = [("a", 1), ("b", 2), ("c", 1)]
        assert counted_look_up(table, 1, *keys) == (["one", None, None], 1)
        STORED["a", 1] = "another"
        assert look_up(table, 2, ("a", 1)) == ["another"]
        assert len(CLIENTS) > 1 and all(client.closed for client in CLIENTS)
        asked_keys = pa.RecordBatch.from_pylist([{"shop": "a", "id": 1}], table.lookup.keys)
        with pytest.raises(StateError, match="the driver cannot lookup"):
            replace(served, name="unknown")(asked_keys, Read())
    finally:
        server.close()


def test_a_key_that_is_not_utf8_has_no_row(tmp_path: Path) -> None:
    table = open_table(tmp_path)
    dead_letters = table.lookup.spool.begin(1, 0)
    table.begin(dead_letters, isolated=False)
    shops = pa.array([b"\xff", b"a"], pa.binary()).view(pa.string())
    keys = pa.RecordBatch.from_arrays([shops, pa.array([1, 1])], schema=table.lookup.keys)
    assert [row and row["name"] for row in table.rows_of(keys).to_pylist()] == [None, "one"]
    assert (dead_letters.count, CALLS) == (1, [[("a", 1)]])


def test_rows_are_kept_for_a_batch_without_a_ttl(tmp_path: Path) -> None:
    """So is the absence of a row."""
    table = open_table(tmp_path)
    look_up(table, 1, ("a", 1), ("c", 1))
    STORED.update({("a", 1): "changed", ("c", 1): "new"})
    assert look_up(table, 1, ("a", 1), ("c", 1), ("a", 2)) == ["one", None, "two"]
    assert look_up(table, 2, ("a", 1), ("c", 1)) == ["changed", "new"]


def test_rows_are_kept_for_their_ttl(tmp_path: Path) -> None:
    table = open_table(tmp_path, ttl=3600)
    look_up(table, 1, ("a", 1), ("c", 1))
    STORED.update({("a", 1): "changed", ("c", 1): "new"})
    assert look_up(table, 2, ("a", 1), ("c", 1)) == ["one", None]
    assert asked() == [("a", 1), ("c", 1)]


def test_no_rows_are_kept_without_a_cache(tmp_path: Path) -> None:
    table = open_table(tmp_path, ttl=3600, max_bytes=0)
    assert look_up(table, 1, ("a", 1), ("a", 1)) == ["one", "one"]
    assert look_up(table, 1, ("a", 1)) == ["one"]
    assert asked() == [("a", 1), ("a", 1)]


def test_the_rows_used_least_recently_are_removed(tmp_path: Path) -> None:
    table = open_table(tmp_path, ttl=3600, max_bytes=4_000)
    STORED.update({("n", number): "x" * 100 for number in range(100)})
    look_up(table, 1, ("a", 1))
    for number in range(100):
        expected = ["x" * 100, "one"]
        assert look_up(table, 1, ("n", number), ("a", 1)) == expected
    assert asked().count(("a", 1)) == 1
    assert look_up(table, 1, ("n", 0)) == ["x" * 100]
    assert asked().count(("n", 0)) == 2


def test_the_size_of_the_cache_is_limited() -> None:
    cache = LookupCache(ROWS, 3600, 4_000)
    cache.begin(1)
    for number in range(100):
        row = pa.RecordBatch.from_pylist([{"shop": "n", "id": number, "name": "x" * 100}], ROWS)
        cache.add(row, {("n", number): 0})
        assert cache.rows.num_rows <= 13
    assert cache.places([("n", 99)])


def test_a_lost_connection_is_replaced_once(tmp_path: Path) -> None:
    table = open_table(tmp_path)
    look_up(table, 1, ("a", 1))
    CLIENTS[0].error = Transient("made up")
    assert look_up(table, 2, ("a", 1)) == ["one"]
    assert [client.closed for client in CLIENTS] == [True, False]
    CLIENTS[1].error = Permanent("made up")
    with pytest.raises(Permanent, match="made up"):
        look_up(table, 3, ("a", 1))
    assert CLIENTS[1].closed and len(CLIENTS) == 2


def test_a_new_client_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Shops) -> Client:
        raise Transient("made up")

    monkeypatch.setattr(Shops, "open", failing)
    with pytest.raises(Transient, match="made up"):
        look_up(open_table(tmp_path), 1, ("a", 1))


def test_a_bad_row_is_a_dead_letter_and_no_row(tmp_path: Path) -> None:
    table = open_table(tmp_path)
    STORED["a", 2] = "bad"
    names = ["one", None, "three"]
    assert counted_look_up(table, 1, ("a", 1), ("a", 2), ("b", 1)) == (names, 1)
    assert counted_look_up(table, 1, ("a", 2)) == ([None], 0)
