"""Functions with another name in Spark, and functions without a counterpart."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.dialect.calls import rewrite_call
from penstock.sql.dialect.text import DialectError, Edit
from penstock.sql.dialect.tokens import Sql

_NAMES = {
    "approx_distinct": "approx_count_distinct",
    "array_concat": "concat", "array_cat": "concat",
    "array_has": "array_contains",
    "array_length": "array_size",
    "array_to_string": "array_join",
    "arrow_typeof": "typeof",
    "covar": "covar_samp",
    "ends_with": "endswith",
    "list_contains": "array_contains",
    "make_array": "array",
    "make_list": "array",
    "mean": "avg",
    "starts_with": "startswith",
    "stddev_sample": "stddev_samp",
    "strpos": "instr",
    "unnest": "explode",
    "var": "var_samp",
    "var_population": "var_pop",
    "var_sample": "var_samp",
}  # fmt: skip
"""Functions of DataFusion, and functions of Spark with the same arguments and result."""
_TEMPLATES = {
    ("approx_median", 1): "approx_percentile({0}, 0.5D)",
    ("approx_percentile_cont", 2): "approx_percentile({0}, {1})",
    ("array_has_any", 2): "arrays_overlap({0}, {1})",
    ("array_has_all", 2): "(size(array_except({1}, {0})) = 0)",
    ("array_push_back", 2): "array_append({0}, {1})",
    ("array_push_front", 2): "array_prepend({1}, {0})",
    ("list_element", 2): "try_element_at({0}, {1})",
    ("array_element", 2): "try_element_at({0}, {1})",
    ("array_extract", 2): "try_element_at({0}, {1})",
    ("empty", 1): "(size({0}) = 0)",
    ("array_empty", 1): "(size({0}) = 0)",
}
_REFUSED = {
    "approx_percentile_cont_with_weight": "use approx_percentile(value, p, accuracy)",
    "arrow_cast": "use CAST(a AS TYPE) with a type of Spark",
    "multi_hash": "use xxhash64(a, b), which is 8 bytes long, or md5(concat_ws(',', a, b))",
    "array_slice": "use slice(array, first, length)",
    "to_char": "use date_format(time, 'yyyy-MM-dd HH:mm:ss')",
    "to_local_time": "use from_utc_timestamp(time, 'Europe/Berlin')",
}
"""Functions whose meaning Spark does not have under this name."""
_BUILT_IN = ("mean", "array_append", "array_size", "to_char")
"""Functions that Spark has too. Their meaning is that of Spark."""


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark. Raises DialectError at a function without a counterpart."""
    for call in sql.calls():
        name, token = sql[call.name].value.lower(), sql[call.name]
        if name in _BUILT_IN:
            continue
        template = _TEMPLATES.get((name, len(call.arguments)))
        if template:
            yield rewrite_call(sql, call, template)
        elif name in _NAMES:
            yield [Edit(token.start, token.end, _NAMES[name])]
        elif name in _REFUSED:
            raise DialectError(
                f"the function {name} has no counterpart in Spark",
                token.start, token.end, _REFUSED[name], "unknown-function",
            )  # fmt: skip
