"""Some of the dead letters."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import UserError
from penstock.engine.tasks.dead_letter_writer import DEAD_LETTER
from penstock.runtime.dead_letters.selection import Count, Selection


def letter(number: int, node: str, code: str) -> dict[str, Any]:
    return {
        "id": f"{number:02d}abcdef", "pipeline": "p", "node": node, "stage": "decode",
        "code": code, "message": "no", "payload": b"x", "attempt": 1,
        "time": dt.datetime(2024, 5, 1, 10, number, tzinfo=dt.UTC),
    }  # fmt: skip


LETTERS = pa.Table.from_pylist(
    [letter(1, "a", "bad"), letter(2, "b", "bad"), letter(3, "a", "worse"), letter(4, "a", "bad")],
    schema=DEAD_LETTER,
)


def ids(selection: Selection, nodes: tuple[str, ...] = ()) -> list[str]:
    selected = selection.select(LETTERS, nodes)
    found = [each[:2] for each in selected.table.column("id").to_pylist()]
    assert len(selected) == len(found) and {each[:2] for each in selected.ids} == {*found}
    return found


def test_all_that_is_asked_for_must_hold() -> None:
    assert ids(Selection()) == ["01", "02", "03", "04"]
    assert ids(Selection(node="a", code="bad")) == ["01", "04"]
    assert ids(Selection(id="03")) == ["03"]


def test_a_node_without_letters_has_none() -> None:
    assert ids(Selection(node="quiet"), ("quiet",)) == []


@pytest.mark.parametrize(
    ("selection", "hint"),
    [
        (Selection(node="c"), "known: a, b"),
        (Selection(code="wors"), 'did you mean "worse"?'),
        (Selection(id="zz"), "List the IDs with penstock dead list."),
    ],
)
def test_a_selection_without_dead_letters_is_an_error(selection: Selection, hint: str) -> None:
    with pytest.raises(UserError) as error:
        selection.select(LETTERS)
    assert error.value.code == "no-dead-letter" and error.value.hint == hint


def test_the_most_frequent_comes_first() -> None:
    counts = Selection().select(LETTERS).counts()
    assert counts[0] == Count("a", "bad", 2)
    assert sum(each.count for each in counts) == 4


def test_the_latest_comes_first() -> None:
    newest = Selection().select(LETTERS).newest
    assert [each.id[:2] for each in newest(2)] == ["04", "03"]
    assert [each.id[:2] for each in newest(9)] == ["04", "03", "02", "01"]
    assert newest(0) == []
