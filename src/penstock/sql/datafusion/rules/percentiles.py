"""Percentiles: `approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY a)`, `quantile_cont(a, 0.9)`."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.text.calls import rewrite, rewrite_calls, too_few_arguments
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Call, Sql

_WEIGHTED = "percentile({0}, {2}, CAST({1} AS BIGINT))"
_TEMPLATES = {
    ("approx_median", 1): "approx_percentile({0}, 0.5D)",
    ("approx_percentile_cont", 2): "approx_percentile({0}, {1})",
    ("approx_percentile_cont_with_weight", 3): _WEIGHTED,
    ("approx_percentile_cont_with_weight", 4): _WEIGHTED,
    ("percentile_cont", 2): "percentile_cont({1}) WITHIN GROUP (ORDER BY {0})",
    ("quantile_cont", 2): "percentile_cont({1}) WITHIN GROUP (ORDER BY {0})",
}
_ORDERED = ("approx_percentile_cont", "approx_percentile_cont_with_weight", "quantile_cont")


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields aggregates of Spark."""
    ordered = [call for call in sql.calls(*_ORDERED) if _order(sql, call) is not None]
    for call in ordered:
        yield _of_order(sql, call)
    places = {sql[call.name].start for call in ordered}
    for group in rewrite_calls(sql, _TEMPLATES):
        if group[0].start not in places:
            yield group
    for call in sql.calls("approx_percentile_cont"):
        if len(call.arguments) == 3:
            start, end = sql[call.name].start, sql[call.closing].end
            template = "approx_percentile({0}, {1})"
            yield rewrite(sql, start, end, call.arguments[:2], template)


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
    share = "1 - {2}" if descending else "{2}"
    template = f"percentile({{0}}, {share}, CAST({{1}} AS BIGINT))"
    if not weighted:
        template = "approx_percentile({0}, " + share.replace("{2}", "{1}") + ")"
    arguments = call.arguments[: 2 if weighted else 1]
    if len(arguments) <= weighted or first == last:
        raise too_few_arguments(sql, call)
    texts = [sql.slice(first, last), *(sql.slice(*argument) for argument in arguments)]
    return [Edit(start, end, template.format(*texts))]
