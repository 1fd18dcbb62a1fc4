"""Calls of `dynamic_table_check` become calls of a function of the table."""

from __future__ import annotations

import pytest

from penstock.sql.dialect.table_checks import checked_tables
from penstock.sql.dialect.translate import translate
from penstock.sql.text.edits import DialectError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dynamic_table_check('a', x)", "`dynamic_table_check a`(x)"),
        ("NOT Dynamic_Table_Check( 'A b' , f(x, y) )", "NOT `dynamic_table_check A b`(f(x, y) )"),
        (
            "dynamic_table_check('a', CASE WHEN dynamic_table_check('b', x) THEN y END)",
            "`dynamic_table_check a`(CASE WHEN `dynamic_table_check b`(x) THEN y END)",
        ),
        ("dynamic_table_check('`;', x)", "`dynamic_table_check ``;`(x)"),
        ("'dynamic_table_check(1)' AS dynamic_table_check", None),
    ],
)
def test_calls_are_rewritten(text: str, expected: str | None) -> None:
    assert translate(text).text == (expected or text)


def test_places_are_those_of_the_names() -> None:
    text = "SELECT dynamic_table_check('one', x), dynamic_table_check(\n  'two', x) FROM t"
    translation = translate(text)
    found = [(name, translation.origin(at)) for name, at in checked_tables(translation.text)]
    assert found == [("one", text.index("'one'")), ("two", text.index("'two'"))]


def test_a_text_that_cannot_be_read_checks_no_table() -> None:
    assert [*checked_tables("SELECT 'open")] == []


@pytest.mark.parametrize("arguments", ["'a'", "'a', x, y", "a, x", "'a' || 'b', x", "1, x"])
def test_other_calls_are_errors(arguments: str) -> None:
    with pytest.raises(DialectError) as error:
        translate(f"dynamic_table_check({arguments})")
    assert error.value.code == "wrong-arguments"
