"""examples/cdc-postgres, run as its README says."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from command_line import CommandLine
from servers.postgres import Postgres

pytestmark = [pytest.mark.docs, pytest.mark.spark]

EXAMPLE = Path(__file__).parents[2] / "examples" / "cdc-postgres"


def totals(*names: str) -> dict[str, tuple[int, int, Decimal, int]]:
    """The totals of the orders after the changes of these files."""
    orders = {}
    for name in names:
        for line in (EXAMPLE / "data" / name).read_text().splitlines():
            order = json.loads(line)
            if order["_op"] == "d":
                del orders[order["id"]]
            else:
                orders[order["id"]] = order
    sums: dict[str, tuple[int, int, Decimal, int]] = defaultdict(lambda: (0, 0, Decimal(0), 0))
    for order in orders.values():
        count, quantity, amount, paid = sums[order["product"]]
        sums[order["product"]] = (
            count + 1, quantity + order["quantity"], amount + Decimal(order["amount"]),
            paid + (order["status"] == "paid"),
        )  # fmt: skip
    return dict(sums)


def test_totals_follow_the_table(tmp_path: Path, cli: CommandLine) -> None:
    directory = tmp_path / "example"
    shutil.copytree(EXAMPLE, directory, ignore=shutil.ignore_patterns(".penstock", "*.db"))
    with Postgres(None, "penstock", "made-up", "shop") as server:
        environment = {"SHOP": server.login["url"], "SHOP_PASSWORD": "made-up"}
        files = ["orders.jsonl", "changes.jsonl"]
        for number, name in enumerate(files, 1):
            written = {**environment, "FILE": f"data/{name}"}
            for words, variables in (
                (("run", "write-orders.yaml", "--fresh"), written),
                (("run", "totals.yaml", "--until-caught-up"), environment),
            ):
                result = cli(directory, *words, environment=variables)
                assert result.returncode == 0, result.stderr
            with closing(sqlite3.connect(directory / "report.db")) as db:
                rows = db.execute("SELECT product, orders, quantity, amount, paid FROM totals")
                found = {row[0]: (row[1], row[2], Decimal(row[3]), row[4]) for row in rows}
            assert found == totals(*files[:number])
        report = cli(directory, "run", "report.yaml", "--fresh")
        assert report.returncode == 0 and "coffee" in report.stdout
