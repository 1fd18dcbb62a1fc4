"""The table of the components and options of stream-data-processor, for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.spec.dialects.options.declarations import Options
from penstock.spec.dialects.options.listing import Row, list_missing, list_options
from penstock.spec.dialects.stream_data_processor.components import UNSUPPORTED
from penstock.spec.dialects.stream_data_processor.consumers import CONSUMERS
from penstock.spec.dialects.stream_data_processor.graph import NODE, TOP
from penstock.spec.dialects.stream_data_processor.handlers import HANDLERS
from penstock.spec.dialects.stream_data_processor.parsers import PARSERS
from penstock.spec.dialects.stream_data_processor.producers import PRODUCERS

KINDS: Mapping[str, Mapping[str, Options]] = {
    "file": {"top": TOP, "node": NODE}, "producer": PRODUCERS, "parser": PARSERS,
    "handler": HANDLERS, "consumer": CONSUMERS,
}  # fmt: skip
"""The options of each component, by kind."""
BECOMES: Mapping[tuple[str, str], str] = {
    ("file", "top"): "sources, transforms and sinks",
    ("file", "node"): "a transform `handlers` for each node that a consumer reads",
    ("producer", "file"): "source `files`", ("consumer", "file"): "sink `files`",
    ("consumer", "print"): "sink `print`, by default as a table",
    ("handler", "pipeline"): "its handlers",
    ("handler", "log"): "no handler: rows stay as they are",
    ("parser", "graphite"): "format `graphite`; lines of one time and one group of tags are a row, "
                            "by the handler `join`",
}  # fmt: skip
"""The part of a pipeline that a component becomes, unless it has the same name."""
_NAMES = {"producer": "source", "consumer": "sink", "parser": "format"}


def rows() -> Iterator[Row]:
    """Yields the rows of the table."""
    yield from list_options(KINDS, _becomes)
    yield from list_missing(UNSUPPORTED)


def _becomes(kind: str, type_: str) -> str:
    return BECOMES.get((kind, type_), f"{_NAMES.get(kind, kind)} `{type_}`")
