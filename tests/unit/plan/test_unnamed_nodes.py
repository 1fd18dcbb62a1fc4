"""The queries of statements are found again after statements were added, moved or edited."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.plan.unnamed_nodes import UnnamedNodes

TABLES = """\
CREATE TABLE orders (id INT, price INT) WITH (connector = 'files', path = 'in', format = 'json');
CREATE TABLE prices (id INT, price INT) WITH (connector = 'blackhole');
"""
FIRST, SECOND = "SELECT id, price FROM orders", "SELECT id, 100 / price FROM orders"
EDITED, OTHER = "SELECT id, 100 FROM orders", "SELECT id, 0 FROM orders WHERE id > 9"
QUERIES = ("prices_query", "prices_query_2", "prices_query_3")


def nodes(directory: Path, *queries: str) -> UnnamedNodes:
    path = directory / "prices.sql"
    path.write_text(TABLES + "".join(f"INSERT INTO prices {query};\n" for query in queries))
    return UnnamedNodes(app.plan([path]))


@pytest.mark.parametrize(
    ("before", "failed", "after", "found"),
    [
        ([FIRST], 0, [FIRST], 0),
        ([FIRST], 0, [OTHER, FIRST], 1),
        ([FIRST, SECOND], 1, [SECOND, FIRST], 0),
        ([FIRST, FIRST], 1, [FIRST, FIRST], 1),
        ([SECOND], 0, [EDITED], 0),
        ([FIRST, SECOND], 1, [FIRST, EDITED], 1),
        ([FIRST, SECOND], 1, [EDITED, FIRST], 0),
        ([SECOND], 0, [OTHER, EDITED], None),
        ([FIRST, SECOND], 1, [OTHER, EDITED], None),
        ([FIRST, SECOND], 1, [FIRST], None),
    ],
)
def test_queries_of_a_table(
    tmp_path: Path, before: list[str], failed: int, after: list[str], found: int | None
) -> None:
    definition = nodes(tmp_path, *before).definition(QUERIES[failed])
    node = nodes(tmp_path, *after).find(QUERIES[failed], definition)
    assert node == (None if found is None else QUERIES[found])


def test_rows_of_a_moved_query(tmp_path: Path) -> None:
    """The text of `prices_rows` contains only the name of the query."""
    definition = nodes(tmp_path, FIRST).definition("prices_rows")
    assert nodes(tmp_path, OTHER, FIRST).find("prices_rows", definition) == "prices_rows_2"


def test_nodes_of_a_file_have_no_definition(tmp_path: Path) -> None:
    found = nodes(tmp_path, FIRST)
    assert [found.definition(name) for name in ("orders", "prices")] == [None, None]
    assert found.find("orders", None) == "orders"
