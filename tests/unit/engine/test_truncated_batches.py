"""Batches of a checkpoint that begin with a truncation."""

from __future__ import annotations

import asyncio
import io
import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.mysql import MysqlSource
from penstock.core.log import make
from penstock.engine import batch as batch_module
from penstock.engine.batch import BatchRunner
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.engine.sources.source_readers import CLOSED
from penstock.engine.sources.truncated_batches import begins_truncated
from penstock.journal import Message
from penstock.plan.node import Node
from penstock.runtime.batch_events import BatchEvents
from penstock.sdk import Context
from penstock.sdk.database.changes import Progress, TableChangesSource
from penstock.sdk.database.changes.truncations import TRUNCATION
from penstock.spec.node_models import SourceSpec

TRUNCATIONS = (2, 5)


def node(state: Path, on_truncate: str = "apply") -> Node:
    options = {"url": "mysql://host/db", "table": "t", "changes": True, "on_truncate": on_truncate}
    source = MysqlSource.create(
        MysqlSource.config_type.model_validate(options), Context(state=state)
    )
    return Node("orders", "source", source, SourceSpec(type="mysql"), (), None)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint whose batches end before truncations, and an empty batch at the end."""
    directory = tmp_path / "checkpoint"
    (directory / "offsets").mkdir(parents=True)
    for number, end in enumerate((2, 4, 5, 6, 6)):
        offset: dict[str, Any] = {"position": end, "writer": "w"}
        lines = [
            "v2",
            "{}",
            f"orders:{json.dumps({**offset, CLOSED: True} if end == 6 else offset)}",
        ]
        (directory / "offsets" / str(number)).write_text("\n".join(lines))
    StartOffsets(directory).record("orders", {"position": 0})
    return directory


def test_batches_after_truncations(checkpoint: Path, tmp_path: Path) -> None:
    orders = node(tmp_path)
    assert isinstance(orders.source, TableChangesSource)
    metadata = {"lsn": "", "snapshot": False, **Progress()._asdict()}
    payloads = [TRUNCATION if position in TRUNCATIONS else b"{}" for position in range(6)]
    with orders.source.journal() as journal:
        asyncio.run(journal.append([Message(payload, metadata) for payload in payloads]))
    found = [begins_truncated(orders, checkpoint, number) for number in range(5)]
    assert found == [False, True, False, True, False]
    StartOffsets(checkpoint).record("orders", {"position": 2})
    assert begins_truncated(orders, checkpoint, 0) is False
    StartOffsets(checkpoint).record("orders", {"position": 5})
    (checkpoint / "offsets/0").write_text("v2\n{}\norders:" + json.dumps({"position": 6}))
    assert begins_truncated(orders, checkpoint, 0) is True
    ignoring = node(tmp_path, "ignore")
    assert not any(begins_truncated(ignoring, checkpoint, number) for number in range(5))


def test_a_batch_that_has_emptied_targets_is_logged(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, after all sinks have written the batch."""
    (checkpoint / "metadata").write_text(json.dumps({"id": "id"}))
    query: Any = SimpleNamespace(
        name="q", root="orders", sinks=("copy", "large"), observed={}, whole_input=False
    )
    log = io.StringIO()
    events: Any = SimpleNamespace(
        log=make("json", file=log), on_begin=lambda *_: None, on_end=lambda *_: None
    )
    events.on_truncated = partial(BatchEvents.on_truncated, events)
    nodes = dict.fromkeys(query.sinks)
    builder: Any = SimpleNamespace(plan=SimpleNamespace(nodes=nodes, state=checkpoint))
    runner = BatchRunner(builder, query, checkpoint, events)
    monkeypatch.setattr(runner, "_run", lambda root, batch: None)
    for number, truncates in enumerate((False, True)):
        monkeypatch.setattr(batch_module, "begins_truncated", lambda *_, now=truncates: now)
        runner.written = -1
        runner(None, number)  # type: ignore[arg-type]
    (line,) = map(json.loads, log.getvalue().splitlines())
    assert (line["event"], line["query"], line["batch"]) == ("targets emptied", "q", 1)
    assert line["sinks"] == ["copy", "large"]


def test_other_roots_have_no_truncations(tmp_path: Path) -> None:
    assert begins_truncated(None, tmp_path, 0) is False
