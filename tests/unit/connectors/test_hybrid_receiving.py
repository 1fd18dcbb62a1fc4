"""Sources in phases whose last phase receives messages into a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.connectors.hybrid import HybridSource
from penstock.core.errors import Transient, flatten_errors
from penstock.core.log import Silent
from penstock.deploy.kubernetes.listeners import listeners
from penstock.engine.sources import served_journal
from penstock.engine.sources.served_journal import serve_journal
from penstock.journal import Message
from penstock.journal.reader import read_chunks
from penstock.observe.metrics import Metrics
from penstock.plan.executor_state import shared_state
from penstock.plan.fingerprint import fingerprint
from penstock.plan.guarantee import guarantee
from penstock.plan.model import Plan
from penstock.runtime.backlog import count_backlog
from penstock.runtime.receiving.receivers import Receivers
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk import Offset, Read, ReceivingSource
from penstock.sdk.database.changes.progress import DONE, Progress
from penstock.sdk.database.changes.rows import change_payload
from penstock.sdk.database.changes.truncations import TRUNCATION, TruncationWriter
from penstock.sdk.operations import Operation
from penstock.spec.runtime_models import Restart

PIPELINE = """\
name: shop
runtime: {{state: {state}}}
sources:
  orders:
    type: hybrid
    schema: id LONG, city STRING
    primary_key: id
    phases:
      - {{type: files, path: old/*.csv, order: name}}
      - {last}
sinks:
  copy: {{type: sqlite, from: orders, path: shop.db, table: orders, mode: upsert}}
"""
HTTP = "{type: http, listen: '0.0.0.0:8080'}"
CHANGES = """{type: postgres, url: 'postgresql://h/d', table: orders, changes: true, slot: shared,
          snapshot: false, on_truncate: apply, max_records: 2}"""
METADATA = {"lsn": "0/1", "transaction": 7, "snapshot": False, **Progress(chunk=DONE)._asdict()}
OTHER = """\
sources:
  items:
    {type: postgres, url: 'postgresql://h/d', table: items, changes: true, slot: shared,
      schema: "id LONG", primary_key: id}
sinks:
  items_copy: {type: sqlite, from: items, path: shop.db, table: items, mode: upsert}
"""
Make = Callable[..., Plan]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(last: str = HTTP, state: str = "state", more: str = "", overlay: str = "") -> Plan:
        (tmp_path / "old").mkdir(exist_ok=True)
        (tmp_path / "old" / "a.csv").write_text("id,city\n1,Oslo\n2,Oslo\n")
        (tmp_path / "p.yaml").write_text(PIPELINE.format(last=last, state=state) + more)
        (tmp_path / "overlay.yaml").write_text(overlay or "sources: {}\n")
        return app.plan([tmp_path / "p.yaml", tmp_path / "overlay.yaml"])

    return make


def source_of(plan: Plan) -> HybridSource:
    source = plan.nodes["orders"].source
    assert isinstance(source, HybridSource)
    return source


def receive(source: HybridSource, *payloads: bytes, **metadata: Any) -> ReceivingSource[Any]:
    """Appends messages as the receiver of the last phase does."""
    receiving = source.receiving_phase()
    assert receiving is not None
    receiving.directory.mkdir(parents=True, exist_ok=True)

    async def append() -> None:
        with receiving.journal() as journal:
            await journal.append([Message(payload, metadata) for payload in payloads])

    asyncio.run(append())
    receiving.record_beginning()
    return receiving


def read(source: HybridSource, start: Offset, read: Read | None = None) -> list[list[Any]]:
    """Returns the rows of each batch up to the latest offset, as tuples."""
    found, read = [], read or Read()
    while (latest := source.latest_offset(start)) != start:
        end = source.limit_batch(start, latest)
        batches = (
            rows for part in source.partitions(start, end) for rows in source.read(part, read)
        )
        found.append([tuple(row.values()) for rows in batches for row in rows.to_pylist()])
        start = end
    return found


def test_the_bounded_phases_end_once_the_last_one_is_received(make: Make, tmp_path: Path) -> None:
    """Nothing that looks at the source before, such as the count of a backlog, fixes the ends."""
    plan = make()
    assert count_backlog(plan, StateDirectory(plan.state)) == 0
    with pytest.raises(Transient, match="is not received yet") as raised:
        source_of(plan).initial_offset()
    assert raised.value.code == "not-received"
    (tmp_path / "old" / "b.csv").write_text("id,city\n3,Oslo\n")
    receive(source_of(plan), b'{"id":4,"city":"Rome"}', b"bad", b'{"id":1,"city":"Rome"}')
    source, letters = source_of(make()), Read(metadata=("received", "path"))
    *old, new = read(source, source.initial_offset(), letters)
    assert [row[:2] for rows in old for row in rows] == [(1, "Oslo"), (2, "Oslo"), (3, "Oslo")]
    assert all(received is None for rows in old for _, _, received, _ in rows)
    assert [row[:2] for row in new] == [(4, "Rome"), (1, "Rome")]
    assert all(received is not None and path is None for _, _, received, path in new)
    (bad,) = letters.bad
    assert (bad.origin, bad.position) == ("2:journal", 1)
    assert source.decode(b'{"id":5}', "2:journal", 1).to_pylist() == [{"id": 5, "city": None}]


def test_each_run_receives_before_the_ends_are_found(make: Make, tmp_path: Path) -> None:
    """Messages between two runs are lost, so that the bounded phases end in the run that reads."""
    source = source_of(make())
    receive(source, b'{"id":4}')
    source.await_receiver()
    with pytest.raises(Transient, match="is not received yet"):
        source.initial_offset()
    (tmp_path / "old" / "b.csv").write_text("id,city\n3,Oslo\n")
    receive(source)
    found = read(source, source.initial_offset())
    assert [row[0] for rows in found for row in rows] == [1, 2, 3, 4]
    source.await_receiver()
    assert Receivers(make(), Restart(), Metrics("shop"), Silent()).phases_have_begun


def test_a_journal_begins_after_the_messages_that_were_written(make: Make) -> None:
    """As for the new query of a pipeline with state."""
    source = source_of(make("{type: http, listen: '0.0.0.0:8080', journal: {max_size: 1MiB}}"))
    large = "x" * 100_000
    receive(source, *(b'{"id":%d,"city":"%b"}' % (each, large.encode()) for each in range(4)))
    start = source.initial_offset()
    end = source.latest_offset(start)
    source.commit(end)
    again = source_of(make()).initial_offset()
    assert again["1"] == start["1"] and 0 < again["2"]["position"] <= 4
    assert source.lag({**end, "2": {"position": 1}}, end) == 3


def test_tasks_on_other_machines_read_the_journal_by_the_driver(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, asked = source_of(make()), list[tuple[Path, int, int]]()
    receiving = receive(source, b'{"id":4}')

    class Driver:
        def __call__(self, directory: Path, start: int, end: int) -> Any:
            asked.append((directory, start, end))
            return read_chunks(directory, start, end)

    monkeypatch.setattr(served_journal, "served", lambda directory: Driver())
    monkeypatch.setattr(served_journal, "ServedJournal", lambda driver: driver)
    serve_journal(source)
    assert read(source, source.initial_offset())[-1] == [(4, None)]
    assert asked == [(receiving.directory, 0, 1)]


def test_a_preview_has_the_bounded_phases(make: Make, tmp_path: Path) -> None:
    """No receiver writes to another state."""
    source = source_of(make()).with_state(tmp_path / "other")
    assert read(source, source.initial_offset()) == [[(1, "Oslo"), (2, "Oslo")]]
    assert not (tmp_path / "state").exists()


def test_changes_and_truncations_after_bounded_rows(make: Make) -> None:
    source = source_of(make(CHANGES))
    rows = [{"id": str(number), "city": "Rome"} for number in range(3)]
    payloads = [change_payload(Operation.UPDATE, row) for row in rows]
    receiving = receive(source, *payloads[:1], TRUNCATION, *payloads[1:], **METADATA)
    TruncationWriter(receiving.directory, "apply").add(1)
    start, found = source.initial_offset(), []
    while (latest := source.latest_offset(start)) != start:
        end = source.limit_batch(start, latest)
        batches = [r for p in source.partitions(start, end) for r in source.read(p, Read())]
        rows = [row for batch in batches for row in batch.to_pylist()]
        truncates = source.begins_truncated(start, end)
        found.append((truncates, [(row["id"], row["_op"]) for row in rows]))
        start = end
    assert source.truncates and found == [
        (False, [(1, "i"), (2, "i")]), (False, [(0, "u")]), (True, [(1, "u")]), (False, [(2, "u")]),
    ]  # fmt: skip


def test_the_plan_has_the_receiving_phase(make: Make) -> None:
    plan = make()
    notes = guarantee(plan, plan.nodes["copy"]).notes
    assert any("receives a message at least once; the guarantee covers" in note for note in notes)
    assert [(each.label, each.port) for each in listeners(plan)] == [
        ('source "orders" (type: hybrid)', 8080)
    ]
    assert [each.content for each in shared_state(plan)] in ([], ["received messages"])
    query = fingerprint(plan, b"key")["queries"]["orders"]
    assert query["nodes"]["orders"]["receives"]
    with pytest.raises(Exception, match="acknowledges messages when they are in its journal"):
        make(state="s3://bucket/state")


def test_a_truncation_of_the_own_target(make: Make) -> None:
    """The sink would empty the table that the last phase reads."""
    with pytest.raises(Exception) as raised:
        make(CHANGES, more="  back: {type: postgres, from: orders, url: 'postgresql://h/d', table: "
             "orders, mode: upsert}\n")  # fmt: skip
    (error,) = flatten_errors(raised.value)
    assert error.code == "unsupported-truncation" and 'has the table of source "orders"' in str(
        error
    )


def test_receivers_of_a_run(make: Make) -> None:
    """Sources with one slot share a receiver, also one that is a phase."""
    plan = make(CHANGES, overlay=OTHER)
    receivers = Receivers(plan, Restart(), Metrics("shop"), Silent())
    assert not receivers.phases_have_begun and receivers.awaited == ["orders"]
    (receiver,) = receivers._receivers.values()
    by_node = {each.context.node: each for each in receiver.sources}
    phase = by_node["orders"]
    assert sorted(by_node) == ["items", "orders"] and phase.primary_key == ("id",)
    assert phase.columns is not None and phase.columns.names == ["id", "city", "_op"]
    assert phase.directory == plan.state / "nodes/orders/phases/2/journal"
    receive(source_of(plan))
    assert receivers.phases_have_begun
    contents = StateDirectory(plan.state).contents()
    assert contents == ["received messages not yet written of orders"]
