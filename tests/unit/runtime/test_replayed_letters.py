"""The dead letters that a replay attempts."""

from __future__ import annotations

from typing import Any

from penstock.runtime.dead_letters.replay import with_payload
from penstock.runtime.dead_letters.replay_record import ReplayResult


def letter(stage: str, payload: bytes | None, origin: str | None) -> dict[str, Any]:
    return {"node": "orders", "stage": stage, "payload": payload, "origin": origin}


def test_letters_without_a_record_are_skipped() -> None:
    """A source needs the record. SQL and sinks need the row, which has no origin."""
    replayable = [
        letter("decode", b"1", "a.csv"),
        letter("transform", b"{}", None),
        letter("output", b"{}", None),
        letter("sink", b"{}", None),
    ]
    lost = [letter("decode", None, "a.parquet"), letter("decode", b"{}", None)]
    result = ReplayResult()
    assert list(with_payload([*lost, *replayable], result)) == replayable
    ((node, count, reason),) = ((s.node, s.count, s.reason) for s in result.skipped)
    assert (node, count) == ("orders", 2)
    assert reason.startswith("the dead letters have no payload that can be decoded again; read")
