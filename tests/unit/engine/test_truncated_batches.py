"""Batches of a checkpoint that begin with a truncation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.mysql import MysqlSource
from penstock.engine.checkpoints.start_offsets import StartOffsets
from penstock.engine.sources.source_readers import CLOSED
from penstock.engine.sources.truncated_batches import begins_truncated
from penstock.journal import Message
from penstock.plan.node import Node
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


def test_other_roots_have_no_truncations(tmp_path: Path) -> None:
    assert begins_truncated(None, tmp_path, 0) is False
