"""The block `telemetry` of a node: its labels, and the column of its event time."""

from __future__ import annotations

import re

from penstock.core.location import Location
from penstock.spec.dialects.options.declarations import Option, Options, closed_options
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.tree.nodes import MappingNode, ScalarNode

_WATERMARK = "a watermark belongs to a query, and `penstock status` shows it"
EVENT_TIME: Options = closed_options(
    "column! = no effect",
    Option("unit", choices=("seconds", "milliseconds", "microseconds"), reading="no effect"),
)
TELEMETRY: Options = closed_options(
    Option("event_time", "map", unneeded=_WATERMARK),
    "labels:map = `labels`",
)
_MAX_LABELS, _MAX_BYTES = 20, 256
_RESERVED = ("id", "topology_node_type", "operator_type", "service_instance_id")
_OF_KIND = {
    "kafka": ("topic",), "clickhouse": ("table",), "postgres": ("table",),
    "postgres_aggregate": ("table",), "hybrid": ("table", "topic"), "file": ("path",),
    "webhook": ("url",), "script": ("language",),
    **dict.fromkeys(("sql", "handler", "dynamic_table", "print", "blackhole", "memory"), ()),
}  # fmt: skip
"""The labels that a type of node has itself; of other types `type`."""
_KEY = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def read_labels(reading: Reading, type_: str) -> dict[str, str] | None:
    """Returns the labels of a node. Invalid ones are errors, each at its place."""
    telemetry = reading.map("telemetry", TELEMETRY)
    if telemetry is not None:
        telemetry.map("event_time", EVENT_TIME)
    node = telemetry.get("labels") if telemetry is not None else None
    if not isinstance(node, MappingNode):
        return None
    findings = reading.findings
    if len(node.entries) > _MAX_LABELS:
        findings.error(
            f"{reading.subject} has {len(node.entries)} labels, and may have {_MAX_LABELS}",
            node.entries[_MAX_LABELS].key.location, hint="remove some labels",
        )  # fmt: skip
    labels = {}
    for entry in node.entries:
        value = entry.value.written if isinstance(entry.value, ScalarNode) else ""
        _check(entry.name, value, type_, entry.key.location, findings)
        labels[entry.name] = value
    return labels


def _check(name: str, value: str, type_: str, where: Location, findings: Findings) -> None:
    if name in (*_RESERVED, *_OF_KIND.get(type_, ("type",))):
        findings.error(
            f'the label "{name}" is reserved: it is one of the metrics of {type_}', where,
            code="invalid-name", hint="choose another name",
        )  # fmt: skip
    elif name.startswith("__") or not _KEY.match(name):
        findings.error(
            f'"{name}" is not a valid label', where, code="invalid-name",
            hint="a label has letters, digits and underscores, and does not begin with __ or a "
            "digit",
        )  # fmt: skip
    elif len(value.encode()) > _MAX_BYTES:
        findings.error(f'the label "{name}" is longer than {_MAX_BYTES} bytes', where)
    elif _CONTROL.search(value):
        findings.error(
            f'the label "{name}" has a control character', where, hint="write the value on one line"
        )


PARALLELISM = Option("parallelism", "positive", unneeded="Spark divides the work among its tasks")
TELEMETRY_OPTION = "telemetry:map = `labels`"
