"""The watermark of `CREATE TABLE`: an event time, and its delay or an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from penstock.core.errors import SpecError
from penstock.core.units import duration_text, seconds
from penstock.spec.script.options import read_interval
from penstock.spec.script.reader import TokenReader
from penstock.spec.script.tokens import Text


@dataclass(frozen=True)
class Watermark:
    """`WATERMARK FOR column AS column - INTERVAL delay`, or `AS expression`."""

    column: Text
    delay: Text | None = None
    expression: Text | None = None


class Term(NamedTuple):
    """The column or an interval in a sum, with the sign 1 or -1."""

    text: Text
    sign: int
    is_column: bool


def read_watermark(reader: TokenReader) -> Watermark:
    """Reads `FOR column`, and `AS column - INTERVAL delay` or `DELAY OF INTERVAL delay`.

    A sum of the column and constant intervals is a delay, another text after AS an expression.
    Raises SpecError.
    """
    reader.expect("FOR")
    column = reader.name("the name of a column")
    if reader.accept("DELAY", "OF"):
        reader.accept("INTERVAL")
        return Watermark(column, read_interval(reader))
    if not reader.accept("AS"):
        return Watermark(column)
    text, item = reader.item("an expression")
    try:
        return Watermark(column, _read_delay(item, column))
    except _NotConstantError:
        return Watermark(column, expression=text)


class _NotConstantError(Exception):
    """An expression that is no sum of the event time and constant intervals."""


def _read_delay(reader: TokenReader, column: Text) -> Text | None:
    """Reads a sum. Returns its constant distance below the column; None without intervals.

    Raises _NotConstantError for another expression.
    """
    terms = list(_read_sum(reader, column, 1))
    intervals = [term for term in terms if not term.is_column]
    if not reader.ended or [term.sign for term in terms if term.is_column] != [1]:
        raise _NotConstantError
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
            if not reader.accept(")"):
                raise _NotConstantError
        elif reader.accept("INTERVAL"):
            yield Term(_constant(read_interval, reader), sign, is_column=False)
        else:
            name = _constant(lambda each: each.name("the column of the watermark"), reader)
            if name.value.lower() != column.value.lower() or reader.at("("):
                raise _NotConstantError
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


def _constant(read: Callable[[TokenReader], Text], reader: TokenReader) -> Text:
    """Reads a term. Raises _NotConstantError for another one."""
    try:
        return read(reader)
    except SpecError:
        raise _NotConstantError from None
