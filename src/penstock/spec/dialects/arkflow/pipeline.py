"""A file of ArkFlow as the tree of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from penstock.spec.dialects.arkflow.jobs import JOB, to_stream
from penstock.spec.dialects.arkflow.names import NodeNames
from penstock.spec.dialects.arkflow.streams import STREAM, StreamReader
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree, to_node
from penstock.spec.tree.nodes import MappingNode, Node, SequenceNode

_LOG = "run with --log json and --log-level LEVEL"
_CONTROL = "Penstock has no control interface over HTTP"
LOGGING = options(unneeded("level", _LOG), unneeded("file_path", _LOG), unneeded("format", _LOG))
HEALTH = options(
    "enabled:boolean", "address", "health_path", "readiness_path", "liveness_path",
    *(unneeded(name, _CONTROL) for name in (
        "api_prefix", "api_token", "cors_origins", "hub_url", "node_id", "node_token",
        "agent_lease_ttl_ms", "agent_session_ttl_ms", "data_port", "data_host",
    )),
    unneeded("observability", "the endpoints and /metrics are at the address"),
)  # fmt: skip
TOP: Options = options(
    Option("streams", "list"), "jobs:list = streams, of chains of operators without state",
    "logging:map", "health_check:map",
)  # fmt: skip
_ID = re.compile(r"[A-Za-z0-9_-]+\Z")


def to_pipeline(root: MappingNode, findings: Findings) -> MappingNode:
    """Returns the tree of the pipeline of a file, without streams that have errors.

    Errors and warnings are in `findings`.
    """
    # The tests of a companion file are merged with the pipeline.
    others = [entry for entry in root.entries if entry.name in {"tests", "name"}]
    entries = tuple(entry for entry in root.entries if entry not in others)
    top = Reading(MappingNode(entries, root.location, root.base), "the file", TOP, findings)
    top.map("logging", LOGGING, "logging")
    health = top.map("health_check", HEALTH, "health_check")
    sections: dict[str, dict[str, Tree]] = {"sources": {}, "transforms": {}, "sinks": {}}
    items = [*_items(top, "streams"), *_streams_of_jobs(top)]
    known: set[str] = set()
    names = NodeNames()
    for index, item in enumerate(items):
        if not isinstance(item, MappingNode):
            findings.error("expected a stream, found no map", item.location, code="wrong-type")
            continue
        count = len(findings.errors)
        reading = Reading(item, "the stream", STREAM, findings)
        prefix = _prefix(reading, index, len(items), known)
        found = StreamReader(reading, prefix, names).read()
        if len(findings.errors) == count:
            for name, nodes in found.items():
                sections[name] |= nodes
    if not items and not findings.errors:
        findings.error(
            "the file has no streams", top.where("streams"), code="no-sources",
            hint="add a stream with input, pipeline and output",
        )  # fmt: skip
    tree: dict[str, Tree] = {name: nodes for name, nodes in sections.items() if nodes}
    if health is not None and health.value("enabled", True) is not False:
        tree["runtime"] = {"endpoints": _endpoints(health)}
    pipeline = to_node(tree, root, top.where("streams" if top.get("streams") else "jobs"))
    assert isinstance(pipeline, MappingNode)
    return MappingNode((*pipeline.entries, *others), pipeline.location, root.base)


def _items(top: Reading, name: str) -> Sequence[Node]:
    node = top.get(name)
    return node.items if isinstance(node, SequenceNode) else ()


def _streams_of_jobs(top: Reading) -> Iterator[Node]:
    for job in top.maps("jobs", JOB, "the job"):
        stream = to_stream(job)
        if stream is not None:
            yield stream


def _endpoints(health: Reading) -> Tree:
    return {
        "listen": health.text("address") or "127.0.0.1:8080",
        "health": health.text("health_path") or "/health",
        "ready": health.text("readiness_path") or "/readiness",
        "live": health.text("liveness_path") or "/liveness",
    }


def _prefix(reading: Reading, index: int, count: int, known: set[str]) -> str:
    """Returns the prefix of the names of a stream's nodes; the only stream has none."""
    ident = reading.text("id")
    node = reading.get("id")
    if ident and not _ID.match(ident):
        reading.findings.error(
            f'the id "{ident}" of a stream has characters that are not allowed',
            node.location if node is not None else reading.node.location, code="invalid-name",
            hint="use letters, digits, - and _",
        )  # fmt: skip
        ident = ""
    if ident and ident in known:
        reading.findings.error(
            f'two streams have the id "{ident}"',
            node.location if node is not None else reading.node.location,
            code="duplicate-name",
        )
    known.add(ident)
    if count == 1:
        return ""
    return f"{ident or f'stream_{index}'}_"
