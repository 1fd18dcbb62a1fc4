from __future__ import annotations

import pytest

from penstock.connectors.aws.kinesis.position import END, START, earlier, grown
from penstock.connectors.aws.kinesis.stream import Shard


def shard(name: str, *parents: str) -> Shard:
    return Shard(name, frozenset(parents), closed=False)


SPLIT = [shard("a"), shard("b", "a"), shard("c", "a")]
MERGED = [shard("a"), shard("b"), shard("c", "a", "b")]


def test_children_wait_until_their_parent_was_read() -> None:
    assert grown({"a": "7"}, SPLIT, START) == {"a": "7"}
    assert grown({"a": END}, SPLIT, START) == {"a": END, "b": START, "c": START}


def test_a_child_of_a_merge_waits_for_both() -> None:
    assert grown({"a": END, "b": "7"}, MERGED, START) == {"a": END, "b": "7"}
    assert grown({"a": END, "b": END}, MERGED, "@1")["c"] == "@1"


def test_children_that_are_read_stay_where_they_are() -> None:
    places = {"a": END, "b": "7", "c": "9"}
    assert grown(places, SPLIT, START) == places


def test_ended_shards_are_forgotten_with_their_records() -> None:
    assert grown({"a": END, "b": "7", "c": END}, [shard("b"), shard("c")], START) == {
        "b": "7", "c": END,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second"), [(START, "7"), ("@1", "7"), ("9", "10"), ("10", END), (START, END)]
)
def test_which_place_comes_first(first: str, second: str) -> None:
    assert earlier(first, second) == earlier(second, first) == first
