"""Consumers as sinks."""

from __future__ import annotations

from penstock.spec.dialects.options.declarations import Option, Options, options
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.stream_data_processor.producers import without_scheme

_COMMON = ("type!", Option("from", "any", True, reading="the node or the producer"))
_FORMAT = Option("format", choices=("json", "csv"), reading="`format`, by default `json`")
CONSUMERS: dict[str, Options] = {
    "print": options(*_COMMON, "format:any = rows in this format, in place of a table"),
    "file": options(*_COMMON, "path! = `path`, a directory of files", _FORMAT),
    "tcp": options(
        *_COMMON, Option("endpoints", "list", True, reading="`connect`, a sink for each"),
        "is_external:boolean = lines, or frames of ten digits (the default)", _FORMAT,
    ),
    "zeromq": options(
        *_COMMON, "endpoint! = `listen`", "sync:list = `sync`, an endpoint of each subscriber",
        _FORMAT,
    ),
}  # fmt: skip
"""The consumers and their options."""


def read_consumer(type_: str, reading: Reading) -> list[dict[str, Tree]]:
    """Returns the sinks of a consumer, without their input."""
    format_: Tree = reading.get("format") or "json"
    if type_ == "print":
        if reading.get("format") is None:
            return [{"type": "print", "table": True}]
        return [{"type": "print", "format": format_}]
    if type_ == "file":
        return [{"type": "files", "path": reading.get("path"), "format": format_}]
    if type_ == "zeromq":
        sync = reading.texts("sync")
        return [{
            "type": "zeromq", "listen": reading.get("endpoint"), "sync": sync or None,
            "format": format_,
        }]  # fmt: skip
    framing = None if reading.value("is_external", False) else {"digits": 10}
    return [
        {"type": "tcp", "connect": without_scheme(endpoint), "framing": framing, "format": format_}
        for endpoint in reading.texts("endpoints")
    ]
