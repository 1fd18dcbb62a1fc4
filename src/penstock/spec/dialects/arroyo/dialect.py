"""The dialect of scripts for Arroyo."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence

from penstock.core.names import quote_name
from penstock.spec.dialects.arroyo.connectors import find_connector
from penstock.spec.dialects.arroyo.files import has_time_pattern
from penstock.spec.dialects.arroyo.options import is_arroyo_table, metadata_name, translate_options
from penstock.spec.dialects.arroyo.queries import translate_query
from penstock.spec.dialects.arroyo.unneeded import unneeded_options
from penstock.spec.script.dialect import DELAY, Dialect, Kind
from penstock.spec.script.options import Option
from penstock.spec.script.tokens import Text
from penstock.spec.script.watermark import Watermark
from penstock.spec.tree.nodes import File, ScalarNode
from penstock.sql.text.edits import Translation

_FILES = ("single_file", "filesystem")
"""Connectors whose rows have the time of the file."""


class Arroyo(Dialect):
    """Connectors and options of Arroyo, and queries of DataFusion."""

    replaces_repeated_options = True
    decimal = "DECIMAL(38, 10)"
    translates_queries = True
    printed_format = {
        "type": "json", "nulls": "keep", "timestamp_zone": "none", "not_finite": "null",
    }  # fmt: skip

    def is_used(self, options: Sequence[Option], kind: Kind) -> bool:
        return is_arroyo_table(options, kind)

    def translate_options(
        self,
        file: File,
        options: Sequence[Option],
        kind: Kind,
        table: str,
        types: Collection[str] = (),
    ) -> Sequence[Option]:
        return translate_options(file, options, kind, table, types)

    def unneeded(self, options: Sequence[Option]) -> Iterator[tuple[Option, str]]:
        return unneeded_options(options)

    def connector_type(self, name: str, options: Container[str]) -> str:
        return find_connector(name, options).type

    def metadata_name(self, name: Text, options: Sequence[Option]) -> Text:
        return metadata_name(name, options)

    def event_time(self, connector: str) -> str | None:
        return "modified" if connector in _FILES else None

    def watermark(self, options: Sequence[Option]) -> Watermark | None:
        """Returns the watermark of a table with the option `event_time_field`, or None."""
        column = _column(options, "event_time_field")
        if column is None:
            return None
        bound = self.bound(options)
        if bound is None:
            return Watermark(column, delay=column._replace(value=DELAY))
        return Watermark(column, expression=bound)

    def bound(self, options: Sequence[Option]) -> Text | None:
        """Returns the expression of the watermark that `watermark_field` names, or None."""
        column = _column(options, "watermark_field")
        return column._replace(value=quote_name(column.value)) if column is not None else None

    def writes_by_time(self, options: Sequence[Option]) -> bool:
        return has_time_pattern(options)

    def translate_query(self, query: Translation, *, is_written: bool = False) -> Translation:
        return translate_query(query, is_written=is_written)


def _column(options: Sequence[Option], name: str) -> Text | None:
    option = next((option for option in options if option.name == name), None)
    if option is None or not isinstance(option.value, ScalarNode):
        return None
    node, key = option.value, option.path[0]
    start, end = (node.span.start, node.span.end) if node.span else (key.start, key.end)
    return Text(node.written.strip(), start, end)
