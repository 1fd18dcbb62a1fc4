"""SQL texts among the options of a transform: as written, and as Spark receives them.

Translation is imported at its first use: workers and receivers import the SDK and translate no SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.text import line_and_column

if TYPE_CHECKING:
    from penstock.sql.text.edits import Translation

Route = tuple[str | int, ...]
"""The keys and indexes that lead from a node to a value among its options."""


@dataclass(frozen=True)
class SqlText:
    """A query or expression. `route` leads from the node to the text."""

    route: Route
    written: str
    translation: Translation

    @property
    def text(self) -> str:
        """The text in Spark SQL."""
        return self.translation.text

    def position(self, index: int) -> tuple[int, int]:
        """Returns the line and column in the written text of a character of `text`."""
        return line_and_column(self.written, self.translation.origin(index))

    def index(self, line: int, column: int) -> int:
        """Returns the index in `text` of a line and column, both from 1."""
        lines = self.text.split("\n")
        line = min(max(line, 1), len(lines))
        return sum(len(each) + 1 for each in lines[: line - 1]) + max(column, 1) - 1


def read_sql_text(route: Route, written: str) -> SqlText:
    """Returns a text with its translation. Raises OptionError at a part without a translation."""
    from penstock.sql.dialect.translate import translate
    from penstock.sql.text.edits import DialectError

    try:
        return SqlText(route, written, translate(str(written)))
    except DialectError as error:
        raise error.located(written, *route) from None
