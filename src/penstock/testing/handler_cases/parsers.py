"""The parsers of cases by name: `graphite` and `csv`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from penstock.core.errors import DecodeError
from penstock.formats.graphite.points import PointTable
from penstock.formats.graphite.template import parse_templates
from penstock.handlers.errors import HandlerError
from penstock.testing.handler_cases.columns import read_type
from penstock.testing.handler_cases.csv_parser import CsvParser
from penstock.testing.handler_cases.options import Option, choice, parse_options, parts, text
from penstock.testing.handler_cases.place import Place


class Parser(Protocol):
    """A parser of texts, one for each call."""

    def parse(self, text: str) -> tuple[pa.RecordBatch | None, list[tuple[int, DecodeError]]]:
        """Returns the batch of a text, and the errors with their lines. Raises HandlerError."""


CreateParser = Callable[[], Parser]
_GRAPHITE = {
    "t": Option(lambda value: value.split("|"), aliases=("templates", "template_strings")),
    "sep": Option(text, ".", ("separator",)),
    "time": Option(text, "time", ("time_column_name",)),
    "measurement": Option(text, "measurement", ("measurement_column_name",)),
}
_CSV = {
    "header": Option(choice("first", "every", "none"), "first"),
    "schema": Option(parts(2, 2, "NAME:TYPE"), None),
    "time": Option(text, None, ("time_column_name",)),
}
PARSERS = ("graphite", "csv")


def parser_of(name: str, options: str, place: Place) -> CreateParser:
    """Returns the constructor of a parser. Raises SpecError; the constructor HandlerError."""
    where = place.at("options")
    values = parse_options(options, _GRAPHITE if name == "graphite" else _CSV, where)
    if name == "graphite":
        return lambda: _graphite(values)
    declared = values["schema"]
    types = {column: read_type(kind, where) for column, kind in declared} if declared else None
    return lambda: CsvParser(values["header"], types, values["time"])


def _graphite(values: Mapping[str, Any]) -> Parser:
    try:
        templates = parse_templates(values["t"])
    except ValueError as error:
        raise HandlerError.invalid(str(error)) from None
    return PointTable(
        templates, lambda: int(time.time()), values["sep"], values["time"], values["measurement"]
    )
