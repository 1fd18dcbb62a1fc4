"""Processors as steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.spec.dialects.arkflow.codecs import PROTOBUF, protobuf, read_codec
from penstock.spec.dialects.arkflow.connections import redis_connection
from penstock.spec.dialects.arkflow.expressions import read_expression
from penstock.spec.dialects.arkflow.plans import VALUE
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree

_FIELDS = ("type!", "name", "value_field", "fields_to_include:list")
_LOOKUP = options("name!", "table_name!", Option("key", "any", True))

PROCESSORS: dict[str, Options] = {
    "json_to_arrow": options(*_FIELDS),
    "arrow_to_json": options(*_FIELDS),
    "sql": options("type!", "name", "query!", "table_name", "temporary_list:list"),
    "batch": options("type!", "name", "count:positive", "timeout_ms:natural", "size:positive",
                     "interval"),
    "protobuf_to_arrow": options(*_FIELDS, "proto_inputs:list", "proto_includes:list",
                                 "message_type", "c:map"),
    "arrow_to_protobuf": options(*_FIELDS, "proto_inputs:list", "proto_includes:list",
                                 "message_type", "c:map"),
    "vrl": options(
        "type!", "name", "statement! = `code`",
        unneeded("timezone", "times without a zone are in UTC"),
    ),
    "wasm": options("type!", "name", "path! = `module`", "function", "fuel:positive"),
    "python": options("type!", "name", "function!", "script", "module", "python_path:list"),
}  # fmt: skip
"""The processors and their options."""
_PROTOBUF = options(*PROTOBUF)

TEMPORARIES: dict[str, Options] = {
    "redis": options(
        "type!", "name!", "mode!:map", "redis_type:map", "codec:any = by default JSON"
    ),
}
"""The temporary inputs and their options."""
_TEMPORARY_TYPE = options(Option("type", required=True, choices=("string", "list")))
Temporaries = dict[str, dict[str, Tree]]


def read_temporary(reading: Reading) -> dict[str, Tree]:
    """Returns the options of a lookup of the transform `steps`, without its key."""
    kind = reading.map("redis_type", _TEMPORARY_TYPE)
    return {
        **redis_connection(reading), "kind": kind.text("type") if kind is not None else None,
        "decode": read_codec(reading.get("codec"), reading.subject, reading.findings)
        or {"type": "json"},
    }  # fmt: skip


def _json_step(reading: Reading, type_: str) -> dict[str, Tree]:
    fields = reading.get("fields_to_include")
    return {
        "type": type_, "codec": {"type": "json"}, "column": reading.text("value_field") or VALUE,
        "fields": [*reading.texts("fields_to_include")] if fields is not None else None,
    }  # fmt: skip


def json_to_arrow(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    return _json_step(reading, "decode")


def arrow_to_json(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    return _json_step(reading, "encode")


def sql(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    lookups: list[Tree] = []
    for item in reading.maps("temporary_list", _LOOKUP):
        temporary = temporaries.get(item.text("name"))
        if temporary is None:
            known = ", ".join(temporaries) or "none"
            reading.findings.error(
                f'there is no temporary "{item.text("name")}"', item.where("name"),
                code="unknown-input", hint=f"the temporaries of the stream are: {known}",
            )  # fmt: skip
            continue
        lookups.append(
            {"table": item.text("table_name"), "key": read_expression(item, "key"), **temporary}
        )
    return {
        "type": "sql", "query": reading.get("query"), "table": reading.get("table_name"),
        "lookups": lookups or None,
    }  # fmt: skip


def batch(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    count = reading.get("count") or reading.get("size")
    if count is None:
        reading.findings.error(
            f'{reading.subject} requires "count"', reading.node.location, code="missing-option"
        )
    return {"type": "merge", "count": count}


def _protobuf_step(reading: Reading, type_: str) -> dict[str, Tree]:
    inner = reading.map("c", _PROTOBUF) or reading
    for name in ("proto_inputs", "message_type"):
        if inner.get(name) is None:
            reading.findings.error(
                f'{reading.subject} requires "{name}"', reading.node.location,
                code="missing-option",
            )  # fmt: skip
    return {**_json_step(reading, type_), "codec": protobuf(inner)}


def protobuf_to_arrow(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    return _protobuf_step(reading, "decode")


def arrow_to_protobuf(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    return _protobuf_step(reading, "encode")


def vrl(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    return {"type": "vrl", "code": reading.get("statement")}


def wasm(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    return {
        "type": "wasm", "module": reading.get("path"),
        "function": reading.text("function", "transform"), "fuel": reading.get("fuel"),
    }  # fmt: skip


def python(reading: Reading, temporaries: Temporaries) -> dict[str, Tree]:
    if reading.get("script") is None and reading.get("module") is None:
        reading.findings.error(
            f'{reading.subject} requires "script" or "module"', reading.node.location,
            code="missing-option",
        )  # fmt: skip
    return {
        "type": "python", "function": reading.get("function"), "code": reading.get("script"),
        "module": reading.get("module") if reading.get("script") is None else None,
        "python_path": [*reading.texts("python_path")] or None,
    }  # fmt: skip


READERS: dict[str, Callable[[Reading, Temporaries], dict[str, Tree]]] = {
    "json_to_arrow": json_to_arrow, "arrow_to_json": arrow_to_json, "sql": sql, "batch": batch,
    "protobuf_to_arrow": protobuf_to_arrow, "arrow_to_protobuf": arrow_to_protobuf,
    "python": python, "vrl": vrl, "wasm": wasm,
}  # fmt: skip
"""The functions that read the options of a processor."""


def last_columns(steps: Sequence[tuple[str, str]]) -> list[str] | None:
    """Returns the columns after processors, by type and query; None if the text has no names."""
    if not steps or steps[-1][0] != "sql":
        return None
    import sqlglot
    from sqlglot import errors, exp

    try:
        query = sqlglot.parse_one(steps[-1][1], read="postgres")
    except errors.SqlglotError:
        return None
    while isinstance(query, exp.SetOperation):
        query = query.left
    if not isinstance(query, exp.Select):
        return None
    names = []
    for each in query.expressions:
        if each.is_star or not each.alias_or_name:
            return None
        if not isinstance(each, exp.Alias | exp.Column):
            return None
        identifier = each.args.get("alias") if isinstance(each, exp.Alias) else each.this
        quoted = isinstance(identifier, exp.Identifier) and identifier.quoted
        names.append(each.alias_or_name if quoted else each.alias_or_name.lower())
    return names
