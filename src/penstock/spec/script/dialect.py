"""The interface of dialects of scripts, as the plain dialect: Penstock's options, Spark's SQL."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Literal

from penstock.spec.script.options import Option
from penstock.spec.script.tokens import Text
from penstock.spec.script.watermark import Watermark
from penstock.spec.tree.nodes import File
from penstock.sql.text.edits import Translation

Kind = Literal["source", "lookup", "sink"]
DELAY = "1s"
"""The delay of the watermark of an event time that a table does not declare."""


class Dialect:
    """The words of a script and the meaning of its queries. All methods are pure."""

    replaces_repeated_options = False
    """Whether a repeated option replaces the one before, with a warning; otherwise an error."""
    decimal: str | None = None
    """The type of DECIMAL without a precision; None for that of Spark."""
    translates_queries = False
    """Whether a query may have another text in Spark SQL."""
    printed_format: Mapping[str, str] = {}
    """The options of the format of printed rows; empty for the default format."""

    def is_used(self, options: Sequence[Option], kind: Kind) -> bool:
        """Returns whether a table has a connector or an option that only this dialect has."""
        return False

    def translate_options(
        self,
        file: File,
        options: Sequence[Option],
        kind: Kind,
        table: str,
        types: Collection[str] = (),
    ) -> Sequence[Option]:
        """Returns the options of a table in Penstock's names. Other options remain as they are.

        `table` is the name of the table, and `types` are those of its columns. Raises SpecError at
        an option or value without a counterpart.
        """
        return options

    def unneeded(self, options: Sequence[Option]) -> Iterator[tuple[Option, str]]:
        """Yields the options of a table that are accepted without effect, each with the reason."""
        return iter(())

    def connector_type(self, name: str, options: Container[str]) -> str:
        """Returns the connector of Penstock for a connector."""
        return name

    def metadata_name(self, name: Text, options: Sequence[Option]) -> Text:
        """Returns the name of metadata in Penstock."""
        return name

    def event_time(self, connector: str) -> str | None:
        """Returns the metadata with the event time of a connector, other than by its type."""
        return None

    def watermark(self, options: Sequence[Option]) -> Watermark | None:
        """Returns the watermark that options declare, or None."""
        return None

    def bound(self, options: Sequence[Option]) -> Text | None:
        """Returns the expression of the watermark that options declare, or None."""
        return None

    def writes_by_time(self, options: Sequence[Option]) -> bool:
        """Returns whether the directories of a sink depend on the event time of its rows."""
        return False

    def translate_query(self, query: Translation, *, is_written: bool = False) -> Translation:
        """Returns a query or expression in the SQL of pipelines.

        `is_written` is whether a sink writes the rows.
        """
        return query
