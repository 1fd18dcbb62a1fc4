"""Statements that grant what a server reports as missing."""

from __future__ import annotations

import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from penstock.connectors.clickhouse import ClickhouseSink
from penstock.connectors.clickhouse.errors import translate_error
from penstock.connectors.mysql.grants import grant_of, quoted_account


@pytest.mark.parametrize(
    ("reason", "grant"),
    [
        ("INSERT, DELETE command denied to user 'a'@'10.0.0.1' for table `shop`.`my ``t`",
            "INSERT, DELETE ON `shop`.`my ``t`"),
        ("SELECT command denied to user 'a'@'localhost' for table 'orders'",
            "SELECT ON `my shop`.`orders`"),
        ("SELECT command denied to user 'a'@'%' for column 'id' in table 't'",
            "SELECT ON `my shop`.`t`"),
        ("Access denied; you need (at least one of) the SUPER, BINLOG MONITOR privilege(s) for "
            "this operation", "BINLOG MONITOR ON *.*"),
        ("Access denied for user 'a'@'10.%' to database 'x`y'", "SELECT, INSERT ON `x``y`.*"),
    ],
)  # fmt: skip
def test_grants_of_mysql(reason: str, grant: str) -> None:
    assert grant_of(reason, "a@10.%", "my shop") == f"Run GRANT {grant} TO 'a'@'10.%'."


def test_accounts_of_mysql() -> None:
    assert quoted_account("o'brien@home@%") == "'o''brien@home'@'%'"


@pytest.mark.parametrize(
    ("reason", "grant"),
    [
        ("the grant INSERT(id, name) ON shop.t. (ACCESS_DENIED)", "INSERT(id, name) ON shop.t"),
        ("grant CREATE TABLE ON shop.* (version 23.8)", "CREATE TABLE ON shop.*"),
        ("the grant SELECT(id) ON shop.t", "SELECT(id) ON shop.t"),
    ],
)
def test_grants_of_clickhouse(reason: str, grant: str) -> None:
    config = ClickhouseSink.config_type.model_validate(
        {"url": "clickhouse://db/shop", "table": "t", "auth": {"username": "a`b", "password": "x"}}
    )
    text = (
        f"Code: 497. DB::Exception: a: Not enough privileges. To execute this query, it's "
        f"necessary to have {reason}"
    )
    error = translate_error(DatabaseError(text), config)
    assert error is not None and error.code == "authorization"
    assert error.hint == f"Run GRANT {grant} TO `a\\`b`."
