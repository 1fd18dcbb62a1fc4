"""Names, types, functions and operators of DataFusion that Spark does not have.

They apply to all texts: a text of Spark SQL remains as it is. A rule translates a part of a text by
itself; it yields groups of edits, and the edits of a group belong together. A rule finds nothing in
its own output. `RULES` is in the order of application.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.sql.datafusion.rules import (
    arrays,
    arrow_types,
    distinct_on,
    encodings,
    functions,
    json_functions,
    json_operators,
    literals,
    maps,
    names,
    nanoseconds,
    numbers,
    ordered_aggregates,
    percentiles,
    quantifiers,
    regular_expressions,
    stars,
    time_formats,
    times,
    types,
    unnest,
    window_orders,
)
from penstock.sql.text.edits import Edit
from penstock.sql.text.sql import Sql

Rule = Callable[[Sql], Iterator[list[Edit]]]

RULES: tuple[Rule, ...] = (
    names.edits,
    stars.edits,
    distinct_on.edits,
    unnest.edits,
    nanoseconds.edits,
    json_operators.edits,
    json_functions.edits,
    quantifiers.edits,
    types.edits,
    maps.edits,
    literals.edits,
    arrays.edits,
    arrow_types.edits,
    numbers.edits,
    ordered_aggregates.edits,
    percentiles.edits,
    time_formats.edits,
    times.edits,
    regular_expressions.edits,
    encodings.edits,
    window_orders.edits,
    functions.edits,
)
