"""Producers as sources."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.spec.dialects.options.declarations import Option, Options, options
from penstock.spec.dialects.options.reading import Reading
from penstock.spec.dialects.options.trees import Tree
from penstock.spec.dialects.stream_data_processor.components import read_component
from penstock.spec.dialects.stream_data_processor.parsers import PARSERS, ParserPlan, read_parser

_COMMON = (
    "type!", Option("parser", "any", True, reading="`format` and `schema`"),
    "batch:list = the columns that the rows of a batch share, by default the time",
)  # fmt: skip
PRODUCERS: dict[str, Options] = {
    "tcp": options(
        *_COMMON, "endpoint! = `listen`",
        "is_external:boolean = lines (the default), or frames of ten digits in front of a payload",
    ),
    "zeromq": options(
        *_COMMON, "endpoint! = `connect`",
        "sync = `sync`, by default the endpoint with `_sync`; false without a synchronized start",
    ),
    "file": options(*_COMMON, "path! = `path`, with one file in a batch"),
}  # fmt: skip
"""The producers and their options."""


@dataclass(frozen=True)
class ProducerPlan:
    """A producer: its options, its source, its parser, and the columns of its batches."""

    reading: Reading
    source: dict[str, Tree]
    parser: ParserPlan
    batch: list[str]


def read_producer(type_: str, reading: Reading) -> ProducerPlan | None:
    """Returns a producer; None after an error."""
    found = read_component(reading.get("parser"), "parser", PARSERS, reading.findings, reading.node)
    if found is None:
        return None
    parser = read_parser(*found, in_messages=type_ != "file")
    source = {"tcp": _tcp, "zeromq": _zeromq, "file": _file}[type_](reading)
    source |= {"format": parser.format, "schema": parser.schema}
    return ProducerPlan(reading, source, parser, reading.texts("batch"))


def without_scheme(endpoint: str) -> str:
    """Returns `HOST:PORT` of an endpoint, which may begin with `tcp://`."""
    return endpoint.removeprefix("tcp://")


def _tcp(reading: Reading) -> dict[str, Tree]:
    is_external = reading.value("is_external", True)
    return {
        "type": "tcp", "listen": without_scheme(reading.text("endpoint")),
        "framing": None if is_external else {"digits": 10},
    }  # fmt: skip


def _zeromq(reading: Reading) -> dict[str, Tree]:
    endpoint = reading.text("endpoint")
    if endpoint.startswith("inproc://"):
        reading.reject("endpoint", "inproc has no other process", "read the node with from")
    sync = reading.value("sync")
    default = f"{endpoint}_sync" if endpoint.startswith("ipc://") else None
    return {
        "type": "zeromq", "connect": endpoint,
        "sync": reading.get("sync") if isinstance(sync, str) else default if sync is None else None,
    }  # fmt: skip


def _file(reading: Reading) -> dict[str, Tree]:
    return {"type": "files", "path": reading.get("path"), "order": "name", "max_files": 1}
