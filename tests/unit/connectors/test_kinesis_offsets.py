from __future__ import annotations

import pytest

from penstock.connectors.aws.kinesis.offsets import END, START, Shard, add_children, min_position


def shard(name: str, *parents: str) -> Shard:
    return Shard(name, frozenset(parents), closed=False)


SPLIT = [shard("a"), shard("b", "a"), shard("c", "a")]
MERGED = [shard("a"), shard("b"), shard("c", "a", "b")]


def test_children_wait_until_their_parent_was_read() -> None:
    assert add_children({"a": "7"}, SPLIT, START) == {"a": "7"}
    assert add_children({"a": END}, SPLIT, START) == {"a": END, "b": START, "c": START}


def test_a_child_of_a_merge_waits_for_both() -> None:
    assert add_children({"a": END, "b": "7"}, MERGED, START) == {"a": END, "b": "7"}
    assert add_children({"a": END, "b": END}, MERGED, "@1")["c"] == "@1"


def test_positions_of_children_are_kept() -> None:
    positions = {"a": END, "b": "7", "c": "9"}
    assert add_children(positions, SPLIT, START) == positions


def test_ended_shards_are_removed_with_their_records() -> None:
    assert add_children({"a": END, "b": "7", "c": END}, [shard("b"), shard("c")], START) == {
        "b": "7", "c": END,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second"), [(START, "7"), ("@1", "7"), ("9", "10"), ("10", END), (START, END)]
)
def test_min_position(first: str, second: str) -> None:
    assert min_position(first, second) == min_position(second, first) == first
