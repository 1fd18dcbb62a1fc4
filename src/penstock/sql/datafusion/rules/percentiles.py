"""Percentiles: `approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY a)`, `quantile_cont(a, 0.9)`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.datafusion.typed_functions import QUANTILE, SHARES
from penstock.sql.text.calls import rewrite_calls, too_few_arguments
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Call, Sql

_WEIGHTED = "percentile({0}, {2}, CAST({1} AS BIGINT))"
_TEMPLATES = {
    ("approx_percentile_cont_with_weight", 3): _WEIGHTED,
    ("approx_percentile_cont_with_weight", 4): _WEIGHTED,
    ("percentile_cont", 2): "percentile_cont({1}) WITHIN GROUP (ORDER BY {0})",
    ("quantile_cont", 2): "percentile_cont({1}) WITHIN GROUP (ORDER BY {0})",
}
_ORDERED = ("approx_percentile_cont", "approx_percentile_cont_with_weight", "quantile_cont")
_APPROXIMATE = {"approx_median": (1,), "approx_percentile_cont": (2, 3)}
"""Functions without a weight, and their numbers of arguments."""
_CLAUSES = ("FILTER", "OVER")


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields aggregates of Spark."""
    ordered = [call for call in sql.calls(*_ORDERED) if _order(sql, call) is not None]
    for call in ordered:
        yield _of_order(sql, call)
    places = {sql[call.name].start for call in ordered}
    for group in rewrite_calls(sql, _TEMPLATES):
        if group[0].start not in places:
            yield group
    for call in sql.calls(*_APPROXIMATE):
        counts = _APPROXIMATE[sql[call.name].value.lower()]
        if sql[call.name].start not in places and len(call.arguments) in counts:
            texts = [sql.slice(*argument) for argument in call.arguments]
            yield _quantile(sql, call, call.closing, texts[0], [*texts[1:], "0.5D"][0])


def _quantile(sql: Sql, call: Call, last: int, value: str, share: str) -> list[Edit]:
    """Returns the quantile of a value in place of a call, whose last token is `last`.

    FILTER and OVER are those of both aggregates of the quantile.
    """
    clauses, end = "", last
    for word in _CLAUSES:
        if sql.word(end + 1) == word:
            closing = sql.closing.get(end + 2, end + 2)
            clauses += f" {sql.slice(end + 1, closing + 1)}"
            end = closing
    grid = f"approx_percentile(CAST({value} AS DOUBLE), {SHARES}({share})){clauses}"
    text = f"{QUANTILE}({grid}, count({value}){clauses}, {share})"
    return [Edit(sql[call.name].start, sql[end].end, text)]


def _order(sql: Sql, call: Call) -> tuple[int, int] | None:
    """Returns the tokens of the value in `WITHIN GROUP (ORDER BY value)`, or None."""
    after = call.closing + 1
    closing = sql.closing.get(after + 2)
    if closing is None or not sql.words(after, "WITHIN", "GROUP"):
        return None
    return (after + 5, closing) if sql.words(after + 3, "ORDER", "BY") else None


def _of_order(sql: Sql, call: Call) -> list[Edit]:
    name, order = sql[call.name].value.lower(), _order(sql, call)
    assert order is not None
    first, last = order
    start, end = sql[call.name].start, sql[last].end
    if name == "quantile_cont":
        return [Edit(start, sql[call.name].end, "percentile_cont")]
    descending = sql.word(last - 1) == "DESC"
    if sql.word(last - 1) in ("ASC", "DESC"):
        last -= 1
    weighted = name.endswith("_with_weight")
    arguments = call.arguments[: 2 if weighted else 1]
    if len(arguments) <= weighted or first == last:
        raise too_few_arguments(sql, call)
    texts = [sql.slice(first, last), *(sql.slice(*argument) for argument in arguments)]
    share = f"1 - {texts[-1]}" if descending else texts[-1]
    if not weighted:
        return _quantile(sql, call, order[1], texts[0], share)
    return [Edit(start, end, f"percentile({texts[0]}, {share}, CAST({texts[1]} AS BIGINT))")]
