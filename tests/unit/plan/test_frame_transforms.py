"""Transforms of DataFrames from other packages: the plan follows the facts they state."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from plans import NAMES, ORDERS, memory, planned, sql

from penstock.sdk import Changes, Config, DataFrameTransform, Relation, State, registry


class KeyConfig(Config):
    key: str


class First(DataFrameTransform[KeyConfig]):
    """The first row of each key, with the two methods that most transforms have."""

    def relation(self) -> Relation:
        state = State((f"each {self.config.key}",), version=3, emits_final_rows=True)
        return Relation(state=state, deterministic=False)

    def relate(self, inputs: Mapping[str, Any], session: Any) -> Any:
        (frame,) = inputs.values()
        return frame.dropDuplicates([self.config.key])


class Kept(DataFrameTransform[Config]):
    """The rows of the input, with the facts by default."""

    def relate(self, inputs: Mapping[str, Any], session: Any) -> Any:
        (frame,) = inputs.values()
        return frame


@pytest.fixture(autouse=True)
def _types(monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry.entries("transform")
    for name, class_ in {"first": First, "kept": Kept}.items():
        entry = EntryPoint(name, f"{__name__}:{class_.__name__}", "penstock.transforms")
        monkeypatch.setitem(known, name, entry)


def _document(**source: Any) -> dict[str, Any]:
    return {
        "sources": {"orders": {**ORDERS, **source}},
        "transforms": {
            "kept": {"type": "kept", "from": "orders"},
            "first": {"type": "first", "from": "kept", "key": "id"},
        },
        "sinks": {"out": memory("first")},
    }


def test_the_facts_decide_where_a_transform_is_computed(tmp_path: Path) -> None:
    plan = planned(tmp_path, _document())
    kept, first = plan.nodes["kept"], plan.nodes["first"]
    assert (kept.stateful, kept.deterministic, kept.relation) == (False, True, Relation())
    assert (first.stateful, first.deterministic) == (True, False)
    assert first.state is not None and first.state.contents == ("each id",)
    assert [(query.root, query.output_mode) for query in plan.queries] == [("first", "append")]


def test_a_transform_of_a_table_has_no_state(tmp_path: Path) -> None:
    document = _document()
    document["sources"]["names"] = NAMES
    document["transforms"] |= {
        "first": {"type": "first", "from": "names", "key": "id"},
        "joined": sql("SELECT kept.id, name FROM kept JOIN first ON kept.id = first.id"),
    }
    document["sinks"]["out"]["from"] = "joined"
    first = planned(tmp_path, document).nodes["first"]
    assert first.state is None and not first.stateful
    assert first.relation is not None and first.relation.state is not None


def test_a_transform_receives_the_changes_of_its_input(tmp_path: Path) -> None:
    options = {"schema": f"{ORDERS['schema']}, op STRING", "operation_column": "op"}
    document = _document(**options, primary_key=["id"])
    del document["transforms"]["first"]
    document["sinks"]["out"] |= {"from": "kept", "mode": "upsert", "primary_key": ["id"]}
    kept = planned(tmp_path, document).nodes["kept"]
    assert kept.operation == "op" and kept.primary_key == ("id",)
    assert kept.frame_transform is not None
    assert kept.frame_transform.changes == Changes("op", complete=False)
