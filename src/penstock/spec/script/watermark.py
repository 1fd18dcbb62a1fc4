"""The watermark of `CREATE TABLE`: an event time, and its delay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from penstock.core.errors import SpecError
from penstock.core.units import duration_text, seconds
from penstock.spec.script.options import read_interval
from penstock.spec.script.tokens import Text, TokenReader


@dataclass(frozen=True)
class Watermark:
    """`WATERMARK FOR column AS column - INTERVAL delay`."""

    column: Text
    delay: Text | None = None


class Term(NamedTuple):
    """The column or an interval in a sum, with the sign 1 or -1."""

    text: Text
    sign: int
    is_column: bool


def read_watermark(reader: TokenReader) -> Watermark:
    """Reads `FOR column`, and `AS column - INTERVAL delay` or `DELAY OF INTERVAL delay`.

    The expression after AS may be any sum of the column and constant intervals. Raises SpecError.
    """
    reader.expect("FOR")
    column = reader.name("the name of a column")
    if reader.accept("DELAY", "OF"):
        reader.accept("INTERVAL")
        return Watermark(column, read_interval(reader))
    if not reader.accept("AS"):
        return Watermark(column)
    return Watermark(column, _read_delay(reader, column))


def _read_delay(reader: TokenReader, column: Text) -> Text | None:
    """Reads a sum. Returns its constant distance below the column; None without intervals."""
    terms = list(_read_sum(reader, column, 1))
    intervals = [term for term in terms if not term.is_column]
    if [term.sign for term in terms if term.is_column] != [1]:
        raise _not_constant(reader, column, terms[0].text)
    if not intervals:
        return None
    if [term.sign for term in intervals] == [-1]:
        return intervals[0].text
    delay = -sum(term.sign * _seconds(reader, term.text) for term in intervals)
    if delay < 0:
        raise SpecError(
            "expected a watermark at or before the event time",
            code="invalid-watermark",
            where=reader.location(intervals[-1].text),
            hint=f"write AS {column.value} - INTERVAL '5 seconds'",
        )
    return intervals[0].text._replace(value=duration_text(round(delay, 6)))


def _read_sum(reader: TokenReader, column: Text, outer: int) -> Iterator[Term]:
    """Yields the terms of a sum whose sign is `outer`."""
    sign = outer
    while True:
        if reader.accept("("):
            yield from _read_sum(reader, column, sign)
            reader.expect(")")
        elif reader.accept("INTERVAL"):
            yield Term(read_interval(reader), sign, is_column=False)
        else:
            name = reader.name("the name of the column of the watermark")
            if name.value.lower() != column.value.lower() or reader.at("("):
                raise _not_constant(reader, column, name)
            yield Term(name, sign, is_column=True)
        if reader.accept("-"):
            sign = -outer
        elif reader.accept("+"):
            sign = outer
        else:
            return


def _seconds(reader: TokenReader, text: Text) -> float:
    try:
        return seconds(text.value)
    except ValueError as error:
        raise SpecError(str(error), code="invalid-watermark", where=reader.location(text)) from None


def _not_constant(reader: TokenReader, column: Text, found: Text) -> SpecError:
    return SpecError(
        f"expected {column.value} minus constant intervals, found {found.value}: the watermark has "
        "the same distance to the event time of all rows",
        code="invalid-watermark",
        where=reader.location(found),
        hint=f"write AS {column.value} - INTERVAL '5 seconds', with the longest distance, or "
        "generate another event-time column",
    )
