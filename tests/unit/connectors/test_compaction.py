"""Compaction of tables of Delta Lake and Iceberg, on request and by a rule."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from iceberg_tables import TABLE, catalog_options, client
from lake_tables import read, receipts_of, write
from penstock.cli.main import main
from penstock.connectors.delta import DeltaSink, DeltaSource
from penstock.connectors.iceberg import IcebergSink, IcebergSource
from penstock.core.errors import PenstockError, Permanent
from penstock.sdk import BatchId, Context
from penstock.sdk.lakes.commits import Conflict
from penstock.sdk.lakes.compaction import Compacted, bins
from penstock.sdk.retries import reported_retries

MIB = 1 << 20


class Lake:
    """A table of either kind, its sink and its source."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.path = str(directory / "t")
        self.options = {"path": self.path} if kind == "delta" else catalog_options(directory)

    def sink(self, key: tuple[str, ...] = (), **options: Any) -> Any:
        type_: Any = DeltaSink if self.kind == "delta" else IcebergSink
        made = type_.create(
            type_.config_type.model_validate({**self.options, **options}), Context(owner="one")
        )
        made.mode, made.primary_key = ("upsert", key) if key else ("append", ())
        return made

    def source(self, **options: Any) -> Any:
        type_: Any = DeltaSource if self.kind == "delta" else IcebergSource
        options = {"watch": True, "interval": "1ms", **options}
        return type_.create(type_.config_type.model_validate({**self.options, **options}))

    def files(self) -> int:
        if self.kind == "delta":
            return len(DeltaTable(self.path).file_uris())
        return len(list(client(self.options).load_table(TABLE).scan().plan_files()))

    def rows(self) -> list[Any]:
        if self.kind == "delta":
            rows = DeltaTable(self.path).to_pyarrow_table().to_pylist()
        else:
            rows = client(self.options).load_table(TABLE).scan().to_arrow().to_pylist()
        return sorted(rows, key=lambda row: repr(row["id"]))


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def batch(*ids: int | None) -> pa.RecordBatch:
    """Returns rows of two partitions, with nulls in nested values."""
    return pa.record_batch({
        "id": pa.array(ids, pa.int64()), "p": [f"p{(id_ or 0) % 2}" for id_ in ids],
        "l": pa.array([None if id_ else [{"x": 1}, None] for id_ in ids],
                      pa.list_(pa.struct([("x", pa.int64())]))),
    })  # fmt: skip


@pytest.mark.quick(1)
def test_files_of_a_partition_are_combined(lake: Lake) -> None:
    made = lake.sink(partition_by=["p"])
    for number in range(3):
        write(made, batch(number, number + 10, number + 11), number)
    source = lake.source()
    expected, offset = read(source)
    assert lake.files() == 6 == made.small_files(MIB)
    assert made.compact(MIB) == Compacted(6, 2) and lake.files() == 2
    assert made.compact(MIB) == Compacted() and made.small_files(MIB) == 0
    assert read(source, offset)[0] == []
    found, _ = read(lake.source())
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert made.last_batch("q") == BatchId("q", 2)
    write(made, batch(99), 2)
    assert len(lake.rows()) == 9
    write(made, batch(99), 3)
    assert read(source, offset)[0] == batch(99).to_pylist()


@pytest.mark.slow
def test_larger_files_are_not_changed(lake: Lake) -> None:
    made = lake.sink()
    for number in range(3):
        write(made, batch(number), number)
    assert made.compact(10) == Compacted() and lake.files() == 3


@pytest.mark.quick(2)
@pytest.mark.parametrize("key", [(), ("id",)])
def test_a_rule_combines_files_after_commits(lake: Lake, key: tuple[str, ...]) -> None:
    made = lake.sink(key, compact={"files": 4})
    counts = []
    for number in range(8):
        write(made, batch(number), number)
        counts.append(lake.files())
    assert counts == [1, 2, 3, 1, 2, 3, 1, 2]
    assert [row["id"] for row in lake.rows()] == [*range(8)]
    assert lake.sink().last_batch("q") == BatchId("q", 7)


@pytest.mark.quick(1)
def test_the_interval_of_a_rule(lake: Lake) -> None:
    made = lake.sink(compact={"files": 2, "interval": "1h"})
    for number in range(5):
        write(made, batch(number), number)
    assert lake.files() == 4
    made._next_time = 0.0
    write(made, batch(5), 5)
    assert lake.files() == 1


@pytest.mark.quick(1)
@pytest.mark.parametrize("error", [Conflict("removed"), Permanent("cannot compact")])
def test_a_failure_is_reported_after_the_commit(
    lake: Lake, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lake.sink(compact={"files": 2})
    write(made, batch(1))

    def fail(size: int) -> None:
        raise error

    monkeypatch.setattr(made, "compact", fail)
    reported: list[PenstockError] = []
    with reported_retries(reported.append):
        write(made, batch(2), 1)
    assert len(reported) == 1 and [row["id"] for row in lake.rows()] == [1, 2]
    monkeypatch.undo()
    write(made, batch(3), 2)
    assert lake.files() == 1


@pytest.mark.slow
def test_a_crash_within_a_compaction(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks a run that ends after the commit of a batch, before that of the compaction."""
    made = lake.sink(compact={"files": 2})
    write(made, batch(1))
    receipts, _ = receipts_of(made, batch(2), 1)

    def end(size: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(made, "compact", end)
    with suppress(KeyboardInterrupt):
        made.commit(BatchId("q", 1), receipts)
    again = lake.sink(compact={"files": 2})
    again.commit(BatchId("q", 1), receipts)
    assert [row["id"] for row in lake.rows()] == [1, 2] and lake.files() == 1


@pytest.mark.slow
def test_compaction_beside_a_writer(lake: Lake) -> None:
    made = lake.sink()
    write(made, batch(0))
    errors: list[Exception] = []

    def attempt(action: Callable[[int], object]) -> None:
        try:
            for number in range(1, 4):
                with suppress(Conflict):
                    action(number)
        except Exception as error:
            errors.append(error)

    actions: list[Callable[[int], object]] = [
        lambda number: write(made, batch(number), number), lambda _: lake.sink().compact(MIB),
    ]  # fmt: skip
    threads = [threading.Thread(target=attempt, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and [row["id"] for row in lake.rows()] == [0, 1, 2, 3]


def test_bins() -> None:
    files = [("a", 4, 1), ("a", 4, 2), ("b", 1, 3), ("a", 4, 4), ("a", 10, 5), ("a", 1, 6)]
    assert bins(files, 10) == [[1, 2], [4, 6]]
    assert bins([], 10) == []


@pytest.mark.quick(1)
def test_the_command(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        write(lake.sink(), batch(number), number)
    sink = {"type": lake.kind, "from": "rows", **lake.options}
    nodes = {
        "sources": {"rows": {"type": "memory", "rows": [], "schema": "id LONG"}},
        "sinks": {"lake": sink, "shown": {"type": "print", "from": "rows"}},
    }
    Path("p.yaml").write_text(json.dumps({"name": "p", **nodes}))
    assert main(["compact", "p.yaml", "--size", "1 MiB"]) == 0
    assert capsys.readouterr().out.split() == [
        "node", "files", "combined", "into", "lake", "3", "1"
    ]  # fmt: skip
    assert main(["compact", "p.yaml", "--node", "lake", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"node": "lake", "removed": 0, "added": 0}]
    for words, message in (
        (["--node", "lak"], 'did you mean "lake"?'), (["--node", "shown"], "not a sink of a table"),
        (["--size", "0"], "expected at least 1 byte"), (["--size", "x"], "expected a size"),
    ):  # fmt: skip
        assert main(["compact", "p.yaml", *words]) == 2
        assert message in capsys.readouterr().err
    del nodes["sinks"]["lake"]
    Path("p.yaml").write_text(json.dumps({"name": "p", **nodes}))
    assert main(["compact", "p.yaml"]) == 2
    assert "no sink whose files can be combined" in capsys.readouterr().err
