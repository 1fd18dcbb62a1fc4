"""Jobs as streams: chains of a source, processors and a sink."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.text import did_you_mean
from penstock.spec.dialects.options.declarations import Option, Options, options, unneeded
from penstock.spec.dialects.options.reading import Findings, Reading
from penstock.spec.dialects.options.trees import Tree, to_node
from penstock.spec.tree.nodes import MappingNode, Node

_RUN = "the run has its own tasks, state and checkpoint"
JOB: Options = options(
    "id = the prefix of the nodes", Option("operators", "list", True), "edges:list",
    Option("sources", "list", True), Option("sinks", "list", True),
    *(unneeded(name, _RUN) for name in (
        "version", "parallelism", "max_parallelism", "state", "checkpoint", "recovery", "placement",
    )),
)  # fmt: skip
"""The options of a job."""
OPERATOR = options(
    "id!",
    "kind!",
    "config:map = a processor",
    unneeded("stateful", _RUN),
    unneeded("key_field", _RUN),
)
EDGE = options("id", "from!", "to!", unneeded("partitioned", _RUN))
JOB_SOURCE = options(
    "operator_id!", "input_type = the type of the input", "config:map = the options of the input",
    "codec:any", unneeded("time", "no operator of the job uses event time"),
)  # fmt: skip
JOB_SINK = options(
    "operator_id!", "output_type = the type of the output",
    "config:map = the options of the output", "codec:any",
)  # fmt: skip
_STATELESS = ("source", "map", "filter", "udf", "sink")
_SCRIPT = "a stream has no event time and no state by key; write a SQL script of Penstock"
MISSING_OPERATORS: Mapping[str, str] = dict.fromkeys(("aggregate", "window", "join"), _SCRIPT)
"""The kinds of operators that Penstock does not have, each with the reason."""


def to_stream(job: Reading) -> MappingNode | None:
    """Returns the stream of a job; None after an error."""
    count = len(job.findings.errors)
    operators = {each.text("id"): each for each in job.maps("operators", OPERATOR)}
    chain = _chain(job, operators)
    sources = {each.text("operator_id"): each for each in job.maps("sources", JOB_SOURCE)}
    sinks = {each.text("operator_id"): each for each in job.maps("sinks", JOB_SINK)}
    for name in (*sources, *sinks):
        _check_known(name, operators, job.node, job.findings)
    if len(job.findings.errors) > count or not chain or not sources or not sinks:
        return None
    source, sink = sources.get(chain[0].text("id")), sinks.get(chain[-1].text("id"))
    if source is None or sink is None:
        job.findings.error(
            "the operators of a job begin with one of its sources and end with one of its sinks",
            job.where("operators"), code="unknown-input",
        )  # fmt: skip
        return None
    processors: list[Tree] = [each.get("config") or {} for each in chain[1:-1]]
    tree: dict[str, Tree] = {
        "id": job.get("id"), "input": _component(source, "input_type"),
        "pipeline": {"processors": processors}, "output": _component(sink, "output_type"),
    }  # fmt: skip
    stream = to_node(tree, job.node)
    return stream if isinstance(stream, MappingNode) else None


def _chain(job: Reading, operators: Mapping[str, Reading]) -> list[Reading]:
    """Returns the operators in the order of the edges. Reports others than a chain."""
    for operator in operators.values():
        _check_kind(operator)
    following: dict[str, str] = {}
    for edge in job.maps("edges", EDGE):
        start, end = edge.text("from"), edge.text("to")
        for name in (start, end):
            _check_known(name, operators, edge.node, job.findings)
        if start in following or end in following.values():
            job.findings.error(
                "the operators of a job are a chain here: an operator has several edges",
                edge.node.location, code="unsupported-option",
                hint="write the job as streams, or as a SQL script of Penstock",
            )  # fmt: skip
        following[start] = end
    starts = [name for name in operators if name not in following.values()]
    names = starts[:1]
    while names and names[-1] in following and len(names) <= len(operators):
        names.append(following[names[-1]])
    if len(names) != len(operators) and operators and not job.findings.errors:
        job.findings.error(
            "the edges of a job do not connect its operators to a chain", job.where("operators"),
            code="unknown-input",
        )  # fmt: skip
    return [operators[name] for name in names if name in operators]


def _check_kind(operator: Reading) -> None:
    kind = operator.text("kind")
    if kind in MISSING_OPERATORS:
        operator.reject(
            "kind", f"a job has no operator {kind} here",
            "write it in a SQL script of Penstock, with event time and state",
        )  # fmt: skip
    elif kind not in _STATELESS:
        operator.findings.error(
            f'there is no operator "{kind}"', operator.where("kind"), code="unknown-type",
            hint=did_you_mean(kind, _STATELESS),
        )  # fmt: skip


def _check_known(
    name: str, operators: Mapping[str, Reading], at: MappingNode, findings: Findings
) -> None:
    if name not in operators:
        findings.error(
            f'there is no operator "{name}"', at.location, code="unknown-input",
            hint=did_you_mean(name, list(operators)),
        )  # fmt: skip


def _component(reading: Reading, type_: str) -> Node:
    """Returns the input or the output of a job as a component of a stream."""
    config = reading.get("config")
    given = {each.name: each.value for each in getattr(config, "entries", ())}
    return to_node(
        {"type": reading.get(type_), "codec": reading.get("codec"), **given}, reading.node
    )
