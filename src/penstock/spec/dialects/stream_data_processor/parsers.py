"""Parsers as formats, with the columns of their rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from penstock.core.names import quote_name
from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Option, Options, options
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.tree.nodes import MappingNode, ScalarNode

TYPES = {
    "int64": "BIGINT", "double": "DOUBLE", "string": "STRING", "bool": "BOOLEAN",
    "timestamp": "TIMESTAMP",
}  # fmt: skip
"""The types of columns in SQL."""
PARSERS: dict[str, Options] = {
    "graphite": options(
        "type!", "template_strings!:list = `templates`", "time_column_name = `time`",
        "measurement_column_name = `measurement`", "separator = `separator`",
        "fields:map = columns of fields, `int64` or `double`; without them `field` and `value`",
    ),
    "csv": options(
        "type!", "schema!:map = `schema`, in the order of the columns",
        "time_column_name = the time; by default the only `timestamp`",
        Option("header", choices=("first", "none"), reading="whether files have a header line"),
    ),
}  # fmt: skip
"""The parsers and their options."""
_FILTERED = 2


@dataclass
class ParserPlan:
    """The format of a producer, and the roles of its columns.

    Rows of one time and the same `merged` columns are lines of one row; None keeps lines as rows.
    """

    format: dict[str, Tree]
    schema: str | None
    time: str | None
    measurement: str | None = None
    tags: list[str] = field(default_factory=list)
    merged: list[str] | None = None


def read_parser(type_: str, reading: Reading, *, in_messages: bool) -> ParserPlan:
    """Returns a parser. Payloads of messages may have several lines."""
    plan = _graphite(reading) if type_ == "graphite" else _csv(reading, in_messages)
    if in_messages:
        plan.format["framing"] = "lines"
    return plan


def _graphite(reading: Reading) -> ParserPlan:
    time = reading.text("time_column_name") or "time"
    measurement = reading.text("measurement_column_name") or "measurement"
    tags = _tags(reading.texts("template_strings"))
    format_: dict[str, Tree] = {
        "type": "graphite", "templates": reading.get("template_strings"),
        "separator": reading.get("separator"), "time": reading.get("time_column_name"),
        "measurement": reading.get("measurement_column_name"),
    }  # fmt: skip
    fields = _columns(reading, "fields", ("int64", "double"))
    if fields is None:
        return ParserPlan(format_, None, time, measurement, tags)
    known = {time: "TIMESTAMP", measurement: "STRING", **dict.fromkeys(tags, "STRING"), **fields}
    return ParserPlan(format_, _schema(known), time, measurement, tags, [measurement, *tags])


def _tags(templates: list[str]) -> list[str]:
    """Returns the names of the tags of all templates, in order."""
    found: dict[str, None] = {}
    for text in templates:
        words = text.split()
        pairs = words.pop().split(",") if len(words) > 1 and "=" in words[-1] else []
        template = words[1] if len(words) >= _FILTERED else "".join(words)
        parts = re.sub(r"\b(measurement|field)\*$", r"\1", template).split(".")
        found |= dict.fromkeys(p for p in parts if p not in ("", "measurement", "field"))
        found |= dict.fromkeys(pair.partition("=")[0] for pair in pairs)
    return [*found]


def _csv(reading: Reading, in_messages: bool) -> ParserPlan:
    columns = _columns(reading, "schema", tuple(TYPES)) or {}
    times = [name for name, type_ in columns.items() if type_ == "TIMESTAMP"]
    time = reading.text("time_column_name") or (times[0] if len(times) == 1 else None)
    if time is not None and columns and time not in columns:
        reading.findings.error(
            f'there is no column "{time}"', reading.where("time_column_name"),
            code="unknown-column", hint=did_you_mean(time, columns),
        )  # fmt: skip
    if in_messages and reading.text("header") == "first":
        reading.reject("header", "messages have no header line", "remove header")
    header = None if in_messages else reading.text("header", "first") == "first"
    return ParserPlan({"type": "csv", "header": header}, _schema(columns), time)


def _columns(reading: Reading, option: str, types: tuple[str, ...]) -> dict[str, str] | None:
    """Returns the types in SQL of the columns of an option; None without the option."""
    node = reading.get(option)
    if not isinstance(node, MappingNode):
        return None
    found = {}
    for entry in node.entries:
        word = entry.value.written if isinstance(entry.value, ScalarNode) else ""
        if word not in types:
            reading.findings.error(
                f'"{option}" of {reading.subject} expects one of {", ".join(types)}, found '
                f'"{word}"',
                entry.value.location, hint=did_you_mean(word, types),
            )  # fmt: skip
        found[entry.name] = TYPES.get(word, "STRING")
    return found


def _schema(columns: dict[str, str]) -> str:
    return ", ".join(f"{quote_name(name)} {type_}" for name, type_ in columns.items())
