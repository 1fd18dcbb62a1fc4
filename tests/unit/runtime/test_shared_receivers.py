"""Sources that share a receiver, and their columns after a change of the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import app
from penstock.core.errors import Bug
from penstock.core.log import Silent
from penstock.journal import Message
from penstock.observe.metrics import Metrics
from penstock.plan.model import Plan
from penstock.runtime.receiving.receivers import Receivers
from penstock.runtime.state.changed_schemas import apply_changes, pin_changes
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.schemas import FILE, InferredSchema, pin_entry, read_pinned
from penstock.sdk.database.changes import ChangesSource
from penstock.sdk.database.changes.schemas import version_of
from penstock.spec.runtime_models import Restart

COLUMNS = pa.schema([("id", pa.int32()), ("_op", pa.string())])


def plan(directory: Path, **sources: Any) -> Plan:
    nodes = {
        name: {"primary_key": ["id"], "table": name, "changes": True, **options}
        for name, options in sources.items()
    }
    sinks = {f"{name}_out": {"type": "print", "from": name} for name in nodes}
    path = directory / "shop.yaml"
    path.write_text(json.dumps({"name": "shop", "sources": nodes, "sinks": sinks}))
    return app.plan(path)


def test_sources_of_one_slot_or_server_id_share_a_receiver(tmp_path: Path) -> None:
    postgres = {"type": "postgres", "url": "postgresql://h/db"}
    mysql = {"type": "mysql", "url": "mysql://h/db"}
    made = plan(
        tmp_path, a={**postgres, "slot": "shop"}, b={**postgres, "slot": "shop"},
        c={**postgres, "slot": "other"}, d=postgres, e=postgres,
        f={**postgres, "slot": "shop", "url": "postgresql://h/db2"},
        g={**mysql, "server_id": 7}, h={**mysql, "server_id": 7}, i=mysql,
    )  # fmt: skip
    metrics = Metrics()
    receivers = Receivers(made, Restart(), metrics, Silent())
    groups = [[s.context.node for s in each.sources] for each in receivers._receivers.values()]
    assert groups == [["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g", "h"], ["i"]]
    assert sorted(receivers.lost()) == [*"abcdefghi"] == sorted(metrics.receivers)
    assert metrics.receivers["a"] is metrics.receivers["b"]


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    """A state directory with the columns of a source, whose schema changes at its second record."""
    made = plan(tmp_path, orders={"type": "postgres", "url": "postgresql://h/db"})
    state = StateDirectory(made.state)
    with state.locked():
        state.write(FILE, {"orders": pin_entry(InferredSchema("orders", COLUMNS, "_op"))})
        source = _source(made)
        source.columns, source.follows_schema = COLUMNS, True
        schemas = source.schema_writer()
        assert schemas is not None
        _append(source, 1)
        changed = schemas.changed(pa.schema([("id", pa.int64()), ("c", pa.string())]), "0/1")
        assert changed is not None
        schemas.add(1, changed)
    return state


def test_changed_columns_are_applied_and_pinned(state: StateDirectory, tmp_path: Path) -> None:
    made = plan(tmp_path, orders={"type": "postgres", "url": "postgresql://h/db"})
    with pytest.raises(Bug):
        apply_changes(made, state)  # no row has them
    source = _source(made)
    _append(source, 2)
    change = source.schema_change({"position": 0}, {"position": 3})
    assert change is not None and change["position"] == 1
    assert source.schema_change({"position": 2}, {"position": 3}) == {"position": 2}
    assert source.schema_change({"position": 0}, {"position": 1}) is None
    with state.locked():
        changed = apply_changes(made, state)
        pin_changes(changed, state)
    expected = pa.schema([("id", pa.int64()), ("c", pa.string()), ("_op", pa.string())])
    assert source.columns == expected == read_pinned(made, state)["orders"]
    assert version_of(read_pinned(made, state)["orders"]) == 1
    assert source.schema_change({"position": 0}, {"position": 3}) is None
    assert source.changed_columns() is None


def _source(made: Plan) -> ChangesSource[Any]:
    source = made.nodes["orders"].source
    assert isinstance(source, ChangesSource)
    return source


def _append(source: ChangesSource[Any], count: int) -> None:
    """Appends empty records to the journal of a source."""
    with source.journal() as journal:
        for _ in range(count):
            assert journal.offer([Message(b"{}")])
