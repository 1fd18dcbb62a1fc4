"""The tables of a query in the dialect of Apache DataFusion."""

from __future__ import annotations

import sqlglot
from sqlglot import errors, exp


def plain_tables(query: str) -> list[str]:
    """Returns the names of the tables in a query that have no schema; none of an invalid query."""
    try:
        tree = sqlglot.parse_one(query, read="postgres")
    except errors.SqlglotError:
        return []
    own = {each.alias for each in tree.find_all(exp.CTE)}
    tables = [each for each in tree.find_all(exp.Table) if isinstance(each.this, exp.Identifier)]
    names = [each.name if each.this.quoted else each.name.lower() for each in tables if not each.db]
    return [name for name in dict.fromkeys(names) if name not in own]
