"""The table of Streamling's components, options and settings, with their readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.spec.dialects.options.declarations import Options
from penstock.spec.dialects.options.listing import Row, list_missing, list_options
from penstock.spec.dialects.streamling.application import SETTINGS
from penstock.spec.dialects.streamling.calls import TRANSLATED
from penstock.spec.dialects.streamling.functions import FUNCTIONS
from penstock.spec.dialects.streamling.functions import MISSING as NO_FUNCTIONS
from penstock.spec.dialects.streamling.pipeline import TOP
from penstock.spec.dialects.streamling.plugins import ENVELOPE, MISSING, PLUGINS
from penstock.spec.dialects.streamling.sinks import SINKS
from penstock.spec.dialects.streamling.sources import BOUNDED, MODE, OFFSETS, SOURCES, UNBOUNDED
from penstock.spec.dialects.streamling.tables import AGGREGATE, GROUP
from penstock.spec.dialects.streamling.telemetry import TELEMETRY
from penstock.spec.dialects.streamling.transforms import TRANSFORMS

KINDS: Mapping[str, Mapping[str, Options]] = {
    "file": {"top": TOP, "telemetry": TELEMETRY}, "source": SOURCES,
    "part": {
        "bounded_sources": BOUNDED, "unbounded_source": UNBOUNDED, "mode": MODE,
        "offset_table": OFFSETS,
        "group_by": GROUP, "aggregate": AGGREGATE,
    },
    "transform": TRANSFORMS, "sink": SINKS, "plugin": {"any": ENVELOPE, **PLUGINS},
    "setting": {section or "top": options for section, options in SETTINGS.items()},
}  # fmt: skip
"""The options of each component, by kind."""
_BECOMES: Mapping[tuple[str, str], str] = {
    ("source", "file"): "source `files`, and the column `_gs_op`",
    ("source", "kafka"): "source `kafka`, and the column `_gs_op` of the header `dbz.op`",
    ("source", "clickhouse"): "source `clickhouse`, and the column `_gs_op`",
    ("source", "hybrid"): "source `hybrid`, and the column `_gs_op`",
    ("transform", "handler"): "transform `http` with `response: replace`",
    ("sink", "webhook"): "sink `http`",
    ("sink", "postgres"): "sink `postgres` with `mode: upsert`, exactly once",
    ("sink", "clickhouse"): "sink `clickhouse`, whose rows have `is_deleted` and `insert_time`",
    ("plugin", "any"): "a component in Python of this name",
    ("plugin", "basic_plugin.random_source"): "source `generate`",
    ("plugin", "basic_plugin.filter_transform"): "transform `filter`",
    ("plugin", "print_sink"): "sink `print`", ("plugin", "s3_sink"): "sink `files`",
    ("plugin", "mysql_sink"): "sink `mysql`", ("plugin", "sqs"): "sink `sqs`",
    ("plugin", "postgres_cdc_source"): "source `postgres` with `changes: true`",
}  # fmt: skip
_UNDER: Mapping[str, str] = {"file": "", "part": "", "setting": "a setting of all nodes"}


def rows() -> Iterator[Row]:
    """Yields the rows of the table."""
    yield from list_options(KINDS, _becomes)
    yield from list_missing(MISSING)
    for name in FUNCTIONS:
        if not name.startswith("flink_"):
            yield Row(f"function `{name}`", "", "a function in Python, in `functions`")
    for name in sorted({*TRANSLATED}):
        yield Row(f"function `{name}`", "", "an expression of Spark")
    yield from list_missing({f"{name}()": reason for name, reason in NO_FUNCTIONS.items()})
    yield Row("checkpoints", "", "each batch is a checkpoint, in the state directory")
    yield Row("side outputs", "", "`side_outputs` in Python")
    yield Row("plugins in Rust", "", "missing: write the component in Python")


def _becomes(kind: str, type_: str) -> str:
    return _BECOMES.get((kind, type_)) or _UNDER.get(kind) or f"{kind} `{type_}`"
