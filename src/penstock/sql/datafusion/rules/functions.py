"""Functions with another name in Spark, and functions without a counterpart."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.datafusion.typed_functions import TYPEOF
from penstock.sql.text.calls import rewrite_call
from penstock.sql.text.edits import DialectError, Edit
from penstock.sql.text.sql import Sql

NAMES = {
    "approx_distinct": "approx_count_distinct",
    "arrow_typeof": TYPEOF,
    "covar": "covar_samp",
    "datetrunc": "date_trunc",
    "ends_with": "endswith",
    "json_keys": "json_object_keys",
    "make_array": "array",
    "make_list": "array",
    "starts_with": "startswith",
    "stddev_sample": "stddev_samp",
    "strpos": "instr",
    "substr_index": "substring_index",
    "unnest": "explode",
    "var": "var_samp",
    "var_population": "var_pop",
    "var_sample": "var_samp",
}  # fmt: skip
"""Functions of DataFusion, and functions of Spark with the same arguments and result."""
_TEMPLATES = {
    ("json_from_scalar", 1): "to_json(CAST({0} AS VARIANT))",
    ("ltrim", 2): "trim(LEADING {1} FROM {0})",
    ("rtrim", 2): "trim(TRAILING {1} FROM {0})",
    ("trim", 2): "trim(BOTH {1} FROM {0})",
}
_REFUSED = {
    "array_dims": "use size(array) and size(array[0])",
    "array_ndims": "use typeof(array)",
    "arrow_field": "use typeof(a)",
    "arrow_metadata": "use a column: columns have no metadata",
    "cast_to_type": "use CAST(a AS TYPE)",
    "file_row_index": "use a column of the file: rows have no index",
    "list_dims": "use size(array) and size(array[0])",
    "list_ndims": "use typeof(array)",
    "to_local_time": "use from_utc_timestamp(time, 'Europe/Berlin')",
    "try_cast_to_type": "use TRY_CAST(a AS TYPE)",
    "union_extract": "use variant_get(a, '$.name', 'TYPE') of a variant",
    "union_tag": "use schema_of_variant(a) of a variant",
    "with_metadata": "use a column: columns have no metadata",
}


def edits(sql: Sql) -> Iterator[list[Edit]]:
    """Yields functions of Spark. Raises DialectError at a function without a counterpart."""
    for call in sql.calls():
        name, token = sql[call.name].value.lower(), sql[call.name]
        template = _TEMPLATES.get((name, len(call.arguments)))
        if template:
            yield rewrite_call(sql, call, template)
        elif name == "multi_hash" and call.arguments:
            yield rewrite_call(sql, call, _hash_of(len(call.arguments)))
        elif name in NAMES:
            yield [Edit(token.start, token.end, NAMES[name])]
        elif name in _REFUSED:
            raise DialectError(
                f"the function {name} has no counterpart in Spark",
                token.start, token.end, _REFUSED[name], "unknown-function",
            )  # fmt: skip


def _hash_of(count: int) -> str:
    """Returns the template of a hash of 16 bytes of all arguments."""
    fields = ", ".join(f"'{number}', {{{number}}}" for number in range(count))
    return f"unhex(md5(to_json(named_struct({fields}))))"
