"""Columns of a state and those of a pipeline that has changed."""

from __future__ import annotations

import pytest

from penstock.engine.checkpoints.state_schema import Columns, OperatorSchema, stable_name

STORED: Columns = (("k", "int"), ("x", "int"))


def rows(*parts: Columns) -> OperatorSchema:
    return OperatorSchema("rows", parts)


@pytest.mark.parametrize(
    ("stored", "current", "positions"),
    [
        (rows((), STORED), rows((), STORED), [[], [0, 1]]),
        (rows(STORED), rows(STORED[::-1]), [[1, 0]]),
        (rows(STORED), rows((("k", "int"), ("y", "int"))), None),
        (rows(STORED), rows((("k", "int"), ("x", "bigint"))), None),
        (rows(STORED), rows((*STORED, ("z", "int"))), None),
        (rows((("k", "int"), ("k", "int"))), rows((("k", "int"), ("k", "int"))), [[0, 1]]),
        (
            rows((("k", "int"), ("k", "int"), ("x", "int"))),
            rows((("k", "int"), ("x", "int"), ("k", "int"))),
            None,
        ),
        (rows(STORED), OperatorSchema("groups", (STORED,)), None),
    ],
)
def test_positions_of_columns(
    stored: OperatorSchema, current: OperatorSchema, positions: list[list[int]] | None
) -> None:
    assert stored.positions(current) == positions
    assert OperatorSchema.parse(stored.as_dict()) == stored


@pytest.mark.parametrize(
    ("current", "differences"),
    [
        (rows((("k", "int"), ("x", "bigint"))), ['"x" was int and is bigint']),
        (rows((("k", "int"), ("y", "int"))), ['"x" was int and is missing', '"y" int is new']),
        (rows(STORED[::-1]), ["columns have another order"]),
        (
            OperatorSchema("groups", (STORED,)),
            ["it has rows, and the pipeline computes groups"],
        ),
    ],
)
def test_differences(current: OperatorSchema, differences: list[str]) -> None:
    assert rows(STORED).differences(current) == differences


def test_names_have_no_ids_of_expressions() -> None:
    assert stable_name("sum((x#31035 * max(y)#31055L))") == "sum((x * max(y)))"
    assert stable_name("_gen_alias_17") == "_gen_alias_"


@pytest.mark.parametrize(
    ("current", "extended"),
    [
        ((*STORED, ("z", "int")), (*STORED, ("z", "int"))),
        ((("z", "int"), *STORED[::-1]), (*STORED, ("z", "int"))),
        ((("k", "int"), ("x", "bigint")), STORED),
        (STORED[:1], STORED),
    ],
)
def test_columns_that_a_state_lacks_come_last(current: Columns, extended: Columns) -> None:
    key: Columns = (("k", "int"),)
    assert rows(key, STORED).extended(rows(key, current)) == rows(key, extended)
    other_key = rows((("k", "int"), ("z", "int")), current)
    assert rows(key, STORED).extended(other_key).parts[0] == key
