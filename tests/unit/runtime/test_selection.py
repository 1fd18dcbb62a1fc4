"""Some of the dead letters."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from made_letters import DAY, made_letters
from penstock.core.errors import UserError
from penstock.engine.tasks.dead_letter_writer import DEAD_LETTER
from penstock.runtime.dead_letters.selection import MAX_PAGE_BYTES, Count, Page, Selection


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


@pytest.mark.slow
def test_pages_of_many_letters() -> None:
    """All letters once, newest first, also while letters of a page are removed."""
    count = 200_000
    table = made_letters(count)
    found: list[str] = []
    before, pages = None, 0
    while pages == 0 or before is not None:
        letters = Selection().select(table)
        page = letters.page(1000, before)
        found += [each.id for each in page.letters]
        before, pages = page.next, pages + 1
        if pages == 3:  # the last letter of the page is removed
            table = table.filter(pc.not_equal(table.column("id"), found[-1]))
        if pages == 5:
            break
    assert found[:2] == [f"{count - 1:09}", f"{count - 2:09}"]
    assert found == sorted(found, reverse=True)
    assert len({*found}) == len(found) == 5000
    assert letters.page(10, f"{DAY}-{1:09}").next is None


def test_pages_of_large_letters() -> None:
    letters = Selection().select(made_letters(5, payload=b"x" * (MAX_PAGE_BYTES // 2 + 1)))
    first = letters.page(1000)
    assert [len(first.letters), len(letters.page(1000, first.next).letters)] == [1, 1]
    assert Selection().select(made_letters(0)).page(10) == Page([], None)


@pytest.mark.parametrize("place", ["", "x", "-1-a", "9" * 30 + "-a", "½-a"])
def test_a_place_that_is_none(place: str) -> None:
    with pytest.raises(UserError) as error:
        Selection().select(LETTERS).page(1, place)
    assert error.value.code == "invalid-request"
