"""The table of ArkFlow's components and options, with their readings, for the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.spec.dialects.arkflow.buffers import BUFFERS
from penstock.spec.dialects.arkflow.codecs import CODECS
from penstock.spec.dialects.arkflow.components import UNSUPPORTED
from penstock.spec.dialects.arkflow.inputs import INPUTS
from penstock.spec.dialects.arkflow.jobs import (
    EDGE,
    JOB,
    JOB_SINK,
    JOB_SOURCE,
    MISSING_OPERATORS,
    OPERATOR,
)
from penstock.spec.dialects.arkflow.outputs import OUTPUTS
from penstock.spec.dialects.arkflow.pipeline import HEALTH, LOGGING, TOP
from penstock.spec.dialects.arkflow.processors import PROCESSORS, TEMPORARIES
from penstock.spec.dialects.arkflow.streams import PIPELINE, STREAM
from penstock.spec.dialects.options.declarations import Options
from penstock.spec.dialects.options.listing import Row, list_missing, list_options

KINDS: Mapping[str, Mapping[str, Options]] = {
    "file": {
        "top": TOP, "logging": LOGGING, "health_check": HEALTH, "stream": STREAM,
        "pipeline": PIPELINE,
    },
    "job": {
        "job": JOB, "operator": OPERATOR, "edge": EDGE, "source": JOB_SOURCE, "sink": JOB_SINK,
    },
    "input": INPUTS, "output": OUTPUTS, "processor": PROCESSORS, "buffer": BUFFERS,
    "codec": CODECS, "temporary": TEMPORARIES,
}  # fmt: skip
"""The options of each component, by kind."""
BECOMES: Mapping[tuple[str, str], str] = {
    ("input", "file"): "a query of DataFusion, read once",
    ("input", "sql"): "a query of DataFusion over the tables, read once",
    ("input", "generate"): "source `impulse`", ("input", "multiple_inputs"): "a source for each",
    ("output", "drop"): "sink `blackhole`", ("output", "stdout"): "sink `print`",
    ("output", "sql"): "sink `mysql`, `postgres` or `sqlite`, exactly once",
    ("processor", "json_to_arrow"): "step `decode`",
    ("processor", "arrow_to_json"): "step `encode`",
    ("processor", "protobuf_to_arrow"): "step `decode`",
    ("processor", "arrow_to_protobuf"): "step `encode`",
    ("processor", "batch"): "step `merge`", ("processor", "sql"): "step `sql`",
    ("processor", "python"): "step `python`", ("processor", "vrl"): "step `vrl`",
    ("processor", "wasm"): "step `wasm`",
    ("temporary", "redis"): "`lookups` of the step `sql`",
    ("codec", "schema_registry"): "codec `registry`: Avro, Protobuf or JSON",
}  # fmt: skip
"""The part of a pipeline of Penstock that a component becomes, unless it has the same name."""
_NAMES = {"input": "source", "output": "sink", "buffer": "`window` of", "codec": "codec",
          "file": "the same", "job": "the same"}  # fmt: skip


def rows() -> Iterator[Row]:
    """Yields the rows of the table."""
    yield from list_options(KINDS, _becomes)
    for kind, reason in MISSING_OPERATORS.items():
        yield Row("job `operator`", f"`kind: {kind}`", f"missing: {reason}")
    yield from list_missing(UNSUPPORTED)


def _becomes(kind: str, type_: str) -> str:
    if (kind, type_) in BECOMES:
        return BECOMES[kind, type_]
    if kind == "buffer":
        return "`window` of the transform `steps`"
    return f"{_NAMES.get(kind, kind)} `{type_}`"
