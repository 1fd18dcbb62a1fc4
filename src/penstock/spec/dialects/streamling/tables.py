"""Groups and aggregates of the sink `postgres_aggregate`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.spec.dialects.options.declarations import Option, Options, closed_options
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.tree.nodes import MappingNode, ScalarNode

_FROM, _TYPE = "from = `column`; by default the name", "type = `type`: a type of PostgreSQL"
GROUP: Options = closed_options(_FROM, _TYPE)
AGGREGATE: Options = closed_options(
    _FROM, _TYPE,
    Option("fn", required=True, choices=("sum", "count", "avg", "min", "max"),
           reading="`function`"),
)  # fmt: skip
_TYPES = {
    "text": "STRING", "varchar": "STRING", "character varying": "STRING", "char": "STRING",
    "smallint": "SMALLINT", "int2": "SMALLINT", "integer": "INT", "int": "INT", "int4": "INT",
    "bigint": "BIGINT", "int8": "BIGINT", "real": "FLOAT", "float4": "FLOAT",
    "double precision": "DOUBLE", "float8": "DOUBLE", "boolean": "BOOLEAN", "bool": "BOOLEAN",
    "date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP", "bytea": "BINARY",
    "numeric": "DECIMAL(38,18)", "decimal": "DECIMAL(38,18)",
}  # fmt: skip
_NUMERIC = re.compile(r"(?:numeric|decimal)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)\Z")
_LENGTH = re.compile(r"\s*\(\s*\d+\s*\)\Z")


def groups(reading: Reading) -> dict[str, Tree] | None:
    """Returns the columns of the groups; None for one group of all rows."""
    found: dict[str, Tree] = {
        name: {"column": each.text("from") or name, "type": _type(each)}
        for name, each in _columns(reading, "group_by", GROUP)
    }
    return found or None


def aggregates(reading: Reading) -> dict[str, Tree]:
    """Returns the aggregates. An average is two of them, a sum and a count."""
    found: dict[str, Tree] = {}
    for name, each in _columns(reading, "aggregate", AGGREGATE):
        function, own = each.text("fn").lower(), each.text("from")
        column: Tree = own or (None if function == "count" else name)
        if function == "avg":
            found[f"{name}_sum"] = {"function": "sum", "type": _type(each), "column": column}
            found[f"{name}_count"] = {"function": "count", "column": column}
        else:
            found[name] = {"function": function, "type": _type(each), "column": column}
    return found


def _columns(reading: Reading, option: str, known: Options) -> Iterator[tuple[str, Reading]]:
    node = reading.get(option)
    for entry in node.entries if isinstance(node, MappingNode) else ():
        value = entry.value
        if isinstance(value, ScalarNode) and value.value is None:
            value = MappingNode((), value.location, value.base)
        if isinstance(value, MappingNode):
            subject = f'"{entry.name}" of {option} of {reading.subject}'
            yield entry.name, Reading(value, subject, known, reading.findings)


def _type(reading: Reading) -> str | None:
    """Returns the type of a column for a type of PostgreSQL; None without one."""
    written = reading.text("type").lower()
    if not written:
        return None
    match = _NUMERIC.match(written)
    if match is not None:
        return f"DECIMAL({match[1]},{match[2] or 0})"
    type_ = _TYPES.get(_LENGTH.sub("", written))
    if type_ is None:
        reading.findings.error(
            f'there is no type "{written}" for {reading.subject}', reading.where("type"),
            hint="use a type such as numeric(30,5), bigint, double precision or text",
        )  # fmt: skip
    return type_
