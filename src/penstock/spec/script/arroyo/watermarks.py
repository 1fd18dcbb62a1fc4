"""The event time and the watermark that options of Arroyo declare."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.names import quote_name
from penstock.spec.script.options import Option
from penstock.spec.script.tokens import Text
from penstock.spec.script.watermark import Watermark
from penstock.spec.tree.nodes import ScalarNode

DELAY = "1s"
"""The delay of a watermark that Arroyo assumes."""


def declared_watermark(options: Sequence[Option]) -> Watermark | None:
    """Returns the watermark of a table with the option `event_time_field`, or None."""
    column = _column(options, "event_time_field")
    if column is None:
        return None
    bound = declared_bound(options)
    if bound is None:
        return Watermark(column, delay=column._replace(value=DELAY))
    return Watermark(column, expression=bound)


def declared_bound(options: Sequence[Option]) -> Text | None:
    """Returns the expression of the watermark that `watermark_field` names, or None."""
    column = _column(options, "watermark_field")
    return column._replace(value=quote_name(column.value)) if column is not None else None


def _column(options: Sequence[Option], name: str) -> Text | None:
    option = next((option for option in options if option.name == name), None)
    if option is None or not isinstance(option.value, ScalarNode):
        return None
    node, key = option.value, option.path[0]
    start, end = (node.span.start, node.span.end) if node.span else (key.start, key.end)
    return Text(node.written.strip(), start, end)
