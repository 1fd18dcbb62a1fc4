"""Texts of PostgreSQL in rows, ranges and amounts, and the values that a type would change."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.connectors.postgres.literals import bounds, parse_row
from penstock.connectors.postgres.stored import check_stored
from penstock.connectors.postgres.structure import Structure, structures
from penstock.core.errors import Rejected

DE, JP, US = "0,00 €", "￥0", "$0.00"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("()", [None]), ('("")', [""]), ("(,)", [None, None]), ("(1, a )", ["1", " a "]),
        ('(1,"a,""b""\\\\(")', ["1", 'a,"b"\\(']), ('("(1,""x"")",b\\,c)', ['(1,"x")', "b,c"]),
        ('(a"b c"d)', ["ab cd"]),
    ],
)  # fmt: skip
def test_rows(text: str, values: list[str | None]) -> None:
    assert parse_row(text) == values


@pytest.mark.parametrize("text", ["", "1", "(1", "(1,2)x", '("1)', "1,2)"])
def test_texts_that_are_no_rows(text: str) -> None:
    with pytest.raises(ValueError, match="row"):
        parse_row(text)


def test_bounds() -> None:
    assert bounds('{[1,"a ""b"),("2,3",)}') == ["1", 'a "b', "2,3"]


@pytest.mark.parametrize(
    ("type_", "kept", "changed"),
    [
        (Structure("money", zero=US), ["$1,234.50", "-1.5", "(7)", "1.500", ".5"],
         ["1,23", "1.239", ".239", "1.234,50", "12,34.00"]),
        (Structure("money", zero=DE), ["1.234,50 €", "-7", "1.239"], ["1,239", "1.23", "1,234.50"]),
        (Structure("money", zero=JP), ["￥1,234", "5.00"], ["1.5", "1,23"]),
        (Structure("real"), ["0.1", "16777216", "NaN", "-Infinity", "1e38"],
         ["16777217", "0.100000001"]),
        (Structure("point"), ["(0.1,1e300)"], ["(1,0.12345678901234567)"]),
        (Structure("time without time zone"), ["10:00", "10:00:00.5 pm"],
         ["10:00+05", "10:00:00.0000001", "2024-02-29 10:00", "10:00 UTC", "10:00Z"]),
        (Structure("time with time zone"), ["10:00+05:30", "10:00Z"], ["2024-02-29 10:00+05"]),
        (Structure("timestamp without time zone"), ["2024-02-29 10:00", "0044-03-15 10:00 BC"],
         ["2024-02-29 10:00-05", "2024-02-29 10:00 UTC"]),
        (Structure("xid8"), [str(2**64 - 1)], [str(2**64), "-1", "x", ""]),
    ],
)  # fmt: skip
def test_texts_that_a_type_would_change(
    type_: Structure, kept: list[str], changed: list[str]
) -> None:
    check_stored(pa.array([*kept, None], pa.string()), "c", type_)
    for text in changed:
        with pytest.raises(Rejected, match='column "c"'):
            check_stored(pa.array([text]), "c", type_)


def test_arrays_with_another_delimiter_are_texts() -> None:
    rows = [(0, -1, 2, 5, "d", "domain", None), (2, 5, 1, -1, "box[]", "plain", None)]
    assert {found.name for found in structures(rows).values()} == {"text"}
