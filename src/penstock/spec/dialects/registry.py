"""The dialects of scripts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from penstock.spec.dialects.arroyo.dialect import Arroyo
from penstock.spec.script.dialect import Dialect, Kind
from penstock.spec.script.options import Option
from penstock.spec.script.tokens import Text
from penstock.spec.tree.nodes import File

DIALECTS: tuple[Dialect, ...] = (Arroyo(),)


class PlainDialect(Dialect):
    """The dialect of scripts without words that only another dialect has.

    Their options may have values as in a dialect, and hints name its options.
    """

    def translate_options(
        self,
        file: File,
        options: Sequence[Option],
        kind: Kind,
        table: str,
        types: Collection[str] = (),
    ) -> Sequence[Option]:
        for dialect in DIALECTS:
            options = dialect.translate_options(file, options, kind, table, types)
        return options

    def metadata_name(self, name: Text, options: Sequence[Option]) -> Text:
        for dialect in DIALECTS:
            name = dialect.metadata_name(name, options)
        return name


PLAIN = PlainDialect()


def find_dialect(tables: Iterable[tuple[Sequence[Option], Kind]]) -> Dialect:
    """Returns the dialect of a script with these tables: their options, and their use."""
    known = [*tables]
    return next((each for each in DIALECTS if any(each.is_used(*table) for table in known)), PLAIN)
