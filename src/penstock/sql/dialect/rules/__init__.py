"""Rules that translate a part of a SQL text by itself, in the order of their application.

A rule yields groups of edits; the edits of a group belong together. A rule finds nothing in its own
output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.sql.dialect.rules import (
    arrays,
    arrow_types,
    calendar_windows,
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
    unnest.edits,
    calendar_windows.edits,
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
