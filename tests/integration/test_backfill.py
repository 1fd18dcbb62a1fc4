"""Backfill of a sink that an existing query gains: each row once, also after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.connectors.memory import tables
from penstock.core.errors import PenstockError, StateError
from penstock.runtime.backfills.backfill import Backfill

pytestmark = pytest.mark.spark

Run = Callable[..., list[str]]
COPY = {"copy": {"type": "files", "from": "doubled", "path": "copy"}}


def put(root: Path, name: str, *ids: int) -> None:
    (root / "in").mkdir(exist_ok=True)
    (root / "in" / name).write_text("".join(f'{{"id": {id_}}}\n' for id_ in ids))


def rows(root: Path, sink: str) -> list[int]:
    texts = [path.read_text() for path in (root / sink).glob("*.jsonl")]
    return sorted(json.loads(line)["id"] for text in texts for line in text.splitlines())


def write_pipeline(root: Path, sinks: dict[str, Any]) -> Path:
    document = {
        "name": "shop",
        "sources": {
            "orders": {"type": "files", "path": "in/*.jsonl", "schema": "id LONG", "max_files": 1}
        },
        "transforms": {"doubled": {"type": "sql", "sql": "SELECT id * 2 AS id FROM orders"}},
        "sinks": {"out": {"type": "files", "from": "orders", "path": "out"}, **sinks},
    }
    file = root / "shop.yaml"
    file.write_text(json.dumps(document))
    return file


@pytest.fixture
def run(tmp_path: Path, penstock_spark: SparkSession) -> Run:
    """Runs the pipeline with further sinks. Returns the notes for the user."""
    put(tmp_path, "a.jsonl", 1, 2)
    put(tmp_path, "b.jsonl", 3)

    def execute(sinks: dict[str, Any], backfill: str | None = None) -> list[str]:
        notes: list[str] = []
        outcome = app.run(
            write_pipeline(tmp_path, sinks),
            spark=penstock_spark.newSession(),
            options=app.RunOptions(on_note=notes.append, backfill=backfill),
        )
        assert not outcome.errors
        return notes

    execute({})
    return execute


def notes_on_the_sink(notes: list[str]) -> list[str]:
    """Returns the notes on the new sink. The transform above it is new, too."""
    assert sum('transform "doubled": new in query "orders"' in note for note in notes) == 1
    return [note for note in notes if 'transform "doubled"' not in note]


def test_a_backfill_before_the_first_run_with_the_sink(run: Run, tmp_path: Path) -> None:
    put(tmp_path, "c.jsonl", 4)
    assert run(COPY, backfill="copy") == []
    assert rows(tmp_path, "copy") == [2, 4, 6]
    assert rows(tmp_path, "out") == [1, 2, 3]
    (note,) = notes_on_the_sink(run(COPY))
    assert note.endswith(
        'sink "copy": new in query "orders", starts with the next batch, after its backfill'
    )
    assert rows(tmp_path, "copy") == [2, 4, 6, 8]
    assert rows(tmp_path, "out") == [1, 2, 3, 4]
    assert not (tmp_path / ".penstock/shop/backfill/copy").exists()


def test_a_backfill_after_runs_with_the_sink(run: Run, tmp_path: Path) -> None:
    put(tmp_path, "c.jsonl", 4)
    (note,) = notes_on_the_sink(run(COPY))
    assert note.endswith(f"penstock run {tmp_path / 'shop.yaml'} --backfill copy")
    assert rows(tmp_path, "copy") == [8]
    run(COPY, backfill="copy")
    assert rows(tmp_path, "copy") == [2, 4, 6, 8]
    with pytest.raises(PenstockError, match="its backfill is complete") as raised:
        run(COPY, backfill="copy")
    assert raised.value.code == "nothing-to-backfill"
    put(tmp_path, "d.jsonl", 5)
    assert run(COPY) == []
    assert rows(tmp_path, "copy") == [2, 4, 6, 8, 10]


def test_a_killed_backfill_continues(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> None:
        raise StateError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Backfill, "complete", kill)
        with pytest.raises(StateError, match="killed"):
            run(COPY, backfill="copy")
    put(tmp_path, "c.jsonl", 4)
    run(COPY)
    checkpoint = tmp_path / ".penstock/shop/backfill/copy/checkpoints/backfill-copy"
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    run(COPY, backfill="copy")
    assert rows(tmp_path, "copy") == [2, 4, 6, 8]


def test_a_sink_that_overwrites_is_written_again(run: Run, tmp_path: Path) -> None:
    upserts = {
        "table": {
            "type": "memory", "from": "doubled", "name": tmp_path.name, "mode": "upsert",
            "primary_key": ["id"],
        }
    }  # fmt: skip
    put(tmp_path, "c.jsonl", 4)
    run(upserts)
    assert tables[tmp_path.name].column("id").to_pylist() == [8]
    for _ in range(2):
        run(upserts, backfill="table")
        assert sorted(tables[tmp_path.name].column("id").to_pylist()) == [2, 4, 6, 8]


def test_bad_records_of_other_sinks_are_not_reported_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in" / "c.jsonl").write_text('{"id": "x"}\n{"id": 4}\n')
    run({})
    dead_letters = tmp_path / ".penstock/shop/dead_letters"
    before = sorted(dead_letters.iterdir())
    assert before
    run(COPY, backfill="copy")
    assert rows(tmp_path, "copy") == [2, 4, 6, 8]
    assert sorted(dead_letters.iterdir()) == before
