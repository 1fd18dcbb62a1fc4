"""Window functions with OVER on streams: computed when the rows of a window are complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.sql.dialect.lineage import Outputs, is_aggregate
from penstock.sql.dialect.query import Query, Select
from penstock.sql.dialect.relation import Relation
from penstock.sql.dialect.text import DialectError
from penstock.sql.dialect.tokens import Sql

_FORM = "write OVER (PARTITION BY window ORDER BY ...), where window is a column of windows"


def computed_by_window(
    sql: Sql, query: Query, relations: Mapping[str, Relation], outputs: Outputs
) -> bool:
    """Returns whether a query with OVER is computed on the rows of complete windows.

    All rows of a window leave its aggregate in the same batch, so PARTITION BY with a column of
    windows is exact within a batch. Raises DialectError at another OVER on a stream with windows.
    """
    found = [(select, index) for select in query.walk() for index in _overs(sql, select)]
    if not found:
        return False
    if not any(relation.has_watermark for relation in relations.values()):
        return False
    for select, index in found:
        _check(sql, select, index, outputs)
    index = found[0][1]
    for select in query.walk():
        if select.groups or select.distinct or is_aggregate(sql, select):
            raise _error(
                sql, index, "OVER and GROUP BY of a stream are separate queries",
                "move the query with GROUP BY to CREATE VIEW, or to a transform of its own",
            )  # fmt: skip
    return True


def _check(sql: Sql, select: Select, index: int, outputs: Outputs) -> None:
    windows = {name for source in select.sources for name in outputs[source].windows}
    if sql.is_sign(index + 1, "("):
        closing = sql.closing.get(index + 1, len(sql))
        if windows & set(_partition(sql, index + 2, closing)):
            return
    if windows:
        names = " or ".join(sorted(windows))
        raise _error(sql, index, f"OVER on a stream needs PARTITION BY {names}", _FORM)
    raise _error(
        sql, index, "OVER on a stream needs rows that have windows",
        "group by tumble(...) or hop(...) first, and select the window",
    )  # fmt: skip


def _overs(sql: Sql, select: Select) -> Iterator[int]:
    nested = [source.part for source in select.sources if source.query is not None]
    for index in range(*select.part):
        is_nested = any(first <= index < last for first, last in nested)
        if sql.word(index) == "OVER" and sql.is_sign(index - 1, ")") and not is_nested:
            yield index


def _partition(sql: Sql, first: int, last: int) -> Iterator[str]:
    """Yields the names after PARTITION BY."""
    if not sql.words(first, "PARTITION", "BY"):
        return
    for token in sql.tokens[first + 2 : last]:
        if token.word in ("ORDER", "ROWS", "RANGE"):
            return
        if token.is_name:
            yield token.value.lower()


def _error(sql: Sql, index: int, message: str, hint: str) -> DialectError:
    return DialectError(message, sql[index].start, sql[index].end, hint)
