"""The event time of the rows that a sink writes, as a column that names their directories."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.names import quote_name
from penstock.spec.script.hidden_times import EVENT_TIME
from penstock.sql.dialect.window_calls import WINDOWS
from penstock.sql.text.calls import whole_call
from penstock.sql.text.edits import Edit
from penstock.sql.text.query import read_query
from penstock.sql.text.sql import read_sql

PARTITION_TIME = "_partition_time"
"""The column of the event time that names the directories of a sink. It is not stored."""
_WINDOW = "_window"


def window_columns(query: str) -> Iterator[Edit]:
    """Yields the column of the window that a query groups by and does not select."""
    sql = read_sql(query)
    clauses = read_query(sql) if sql is not None else None
    if sql is None or clauses is None or len(clauses.selects) != 1:
        return
    select = clauses.selects[0]
    if any(whole_call(sql, item.expression, *WINDOWS) is not None for item in select.items):
        return
    for part in select.groups:
        if whole_call(sql, part, *WINDOWS) is not None:
            text = query[sql[part[0]].start : sql[part[1] - 1].end]
            end = sql[select.items[-1].part[1] - 1].end
            yield Edit(end, end, f", {text} AS {_WINDOW}")
            return


def timed_rows(node: str, *, has_window: bool, has_hidden_time: bool) -> str:
    """Returns the query of the rows of a node and their event time, the last column.

    The hidden event time of the rows is left out.
    """
    time = f"{_WINDOW}.end - INTERVAL '1' MICROSECOND" if has_window else "row_time()"
    left_out = _WINDOW if has_window else EVENT_TIME if has_hidden_time else None
    columns = "*" if left_out is None else f"* EXCEPT ({left_out})"
    return f"SELECT {columns}, {time} AS {PARTITION_TIME} FROM {quote_name(node)}"
