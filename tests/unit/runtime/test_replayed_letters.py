"""The dead letters that a replay attempts."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path

from penstock import app
from penstock.runtime.dead_letters.dead_letter import DeadLetter
from penstock.runtime.dead_letters.replay_record import SkippedNode
from penstock.runtime.dead_letters.replayable import select_replayable, with_payload


def letter(stage: str, payload: bytes | None, origin: str | None) -> DeadLetter:
    return DeadLetter(
        id="3f9a", pipeline="shop", node="orders", stage=stage, code="bad", message="no",
        payload=payload, origin=origin, position=None, attempt=1, time=dt.datetime.now(dt.UTC),
        query="out", batch=0, header=None, definition=None,
    )  # fmt: skip


def test_letters_without_a_record_are_skipped() -> None:
    """A source needs the record. SQL and sinks need the row, which has no origin."""
    replayable = [
        letter("decode", b"1", "a.csv"),
        letter("transform", b"{}", None),
        letter("output", b"{}", None),
        letter("sink", b"{}", None),
    ]
    lost = [letter("decode", None, "a.parquet"), letter("decode", b"{}", None)]
    skipped: list[SkippedNode] = []
    assert list(with_payload([*lost, *replayable], skipped)) == replayable
    ((node, count, reason),) = ((s.node, s.count, s.reason) for s in skipped)
    assert (node, count) == ("orders", 2)
    assert reason.startswith("the dead letters have no payload that can be decoded again; read")


def test_letters_of_a_node_with_several_streams_are_skipped(tmp_path: Path) -> None:
    """The payload of such a letter has the columns of one stream only."""
    path = tmp_path / "shop.json"
    rows = {"type": "memory", "rows": [{"text": "1"}], "schema": "text STRING"}
    one = "SELECT int(text) AS n FROM a"
    both = f"{one} UNION ALL SELECT 1 FROM b"
    path.write_text(json.dumps({
        "name": "shop", "sources": {"a": rows, "b": rows},
        "transforms": {"one": {"type": "sql", "sql": one}, "both": {"type": "sql", "sql": both}},
        "sinks": {f"{name}_out": {"type": "memory", "from": name} for name in ("one", "both")},
    }))  # fmt: skip
    letters = [
        replace(letter("transform", b'{"text": "x"}', None), node=name) for name in ("one", "both")
    ]
    replayable, skipped = select_replayable(app.plan(path), letters, force=True)
    assert [each.node for each in replayable] == ["one"]
    ((node, count, reason),) = ((s.node, s.count, s.reason) for s in skipped)
    assert (node, count) == ("both", 1)
    assert reason == "the node combines several streams; correct the node and read its input again"
