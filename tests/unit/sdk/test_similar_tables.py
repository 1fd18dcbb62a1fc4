"""Hints of the nearest table."""

from __future__ import annotations

import pytest

from penstock.sdk.database.names import TableName, did_you_mean_table

TABLES = [TableName(("orders",)), TableName(("shop", "customers"))]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("order", 'did you mean "orders"?'),
        ("public.order", 'did you mean "orders"?'),
        ("shop.customer", 'did you mean "shop.customers"?'),
        ("public.xyz", "known: orders, shop.customers"),
    ],
)
def test_the_nearest_table(name: str, hint: str) -> None:
    assert did_you_mean_table(TableName.parse(name), TABLES) == hint


def test_a_quote_within_a_name() -> None:
    with pytest.raises(ValueError, match='write a name with quotes as "a""b"'):
        TableName.parse('we"ird')
