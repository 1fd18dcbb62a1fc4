"""The dead letters that a replay attempts."""

from __future__ import annotations

import datetime as dt

from penstock.runtime.dead_letters.dead_letter import DeadLetter
from penstock.runtime.dead_letters.replay_record import SkippedNode
from penstock.runtime.dead_letters.replayable import with_payload


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
