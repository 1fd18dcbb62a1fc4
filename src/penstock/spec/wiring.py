"""Names of nodes and what reads what, checked on the tree so that all mistakes are told at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.names import node_name_problem, pipeline_name_problem
from penstock.core.text import did_you_mean, shorten
from penstock.spec.document import Document
from penstock.spec.nodes import Entry, Mapping, Node, Scalar, Sequence, scalars

_KINDS = {"sources": "source", "transforms": "transform", "sinks": "sink"}


@dataclass(frozen=True)
class Wired:
    """A node by name: its kind, its key and what it says to read."""

    name: str
    kind: str
    key: Scalar
    value: Node
    inputs: tuple[Scalar, ...]


def nodes(document: Document) -> list[Wired]:
    """All nodes in the order of the file."""
    return [
        Wired(entry.name, kind, entry.key, entry.value, tuple(_inputs(entry)))
        for section, kind in _KINDS.items()
        for entry in document.entries(section)
    ]


def wiring(document: Document, *, complete: bool = True) -> Iterator[SpecError]:
    """What is wrong with names and with `from`.

    Where the document is not `complete`, names that are not there are not told.
    """
    every = nodes(document)
    yield from _names(document, every)
    yield from _inputs_exist(every, complete)
    yield from _cycles(every)


def unused(document: Document) -> Iterator[SpecError]:
    """Sources and transforms that nothing reads.

    A transform without `from` names its inputs in its text: any word of it may be one.
    """
    every = nodes(document)
    used = {scalar.text.casefold() for node in every for scalar in node.inputs}
    for node in every:
        if node.kind == "transform" and not node.inputs:
            used |= _words(node.value) - {node.name.casefold()}
    for node in every:
        if node.kind != "sink" and node.name.casefold() not in used:
            yield SpecError(
                f'nothing reads {node.kind} "{node.name}"',
                code=f"unused-{node.kind}",
                where=node.key.location,
                hint=f'a sink or a transform reads it by "from: {node.name}"',
            )


def _words(node: Node) -> set[str]:
    texts = (scalar.text for scalar in scalars(node) if isinstance(scalar.value, str))
    return {word.casefold() for text in texts for word in re.findall(r"\w+", text)}


def _inputs(entry: Entry) -> Iterator[Scalar]:
    node = entry.value.get("from") if isinstance(entry.value, Mapping) else None
    items = node.items if isinstance(node, Sequence) else (node,)
    for item in items:
        if isinstance(item, Scalar) and isinstance(item.value, str) and not item.broken:
            yield item


def _names(document: Document, every: list[Wired]) -> Iterator[SpecError]:
    name = document.root.get("name")
    if isinstance(name, Scalar) and isinstance(name.value, str) and not name.broken:
        yield from _invalid(name.text, pipeline_name_problem(name.text), name.location)
    seen: dict[str, Wired] = {}
    for node in every:
        yield from _invalid(node.name, node_name_problem(node.name), node.key.location)
        first = seen.setdefault(node.name.casefold(), node)
        if first is not node:
            yield _twice(first, node)


def _invalid(name: str, problem: str | None, where: Location) -> Iterator[SpecError]:
    if problem:
        better = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        hint = f'such as "{better}"' if better and node_name_problem(better) is None else None
        yield SpecError(
            f'"{shorten(name, 40)}" is not a name: {problem}',
            code="invalid-name",
            where=where,
            hint=hint,
        )


def _twice(first: Wired, second: Wired) -> SpecError:
    same = first.name == second.name
    message = (
        f'the name "{second.name}" is there twice'
        if same
        else f'the names "{first.name}" and "{second.name}" differ only in case'
    )
    return SpecError(
        message,
        code="duplicate-name",
        where=second.key.location,
        hint=f"the {first.kind} stands at {first.key.location}"
        + ("" if same else "; Spark does not tell them apart"),
    )


def _inputs_exist(every: list[Wired], complete: bool) -> Iterator[SpecError]:
    readable = {node.name for node in every if node.kind != "sink"}
    sinks = {node.name for node in every if node.kind == "sink"}
    for node in every:
        if node.kind == "source":
            continue
        yield from _read_twice(node)
        for scalar in node.inputs:
            others = readable - {node.name}
            if scalar.text in readable:
                continue
            if scalar.text in sinks:
                yield SpecError(
                    f'{node.kind} "{node.name}" cannot read "{scalar.written}", which is a sink',
                    code="reads-sink",
                    where=scalar.location,
                    hint="read what the sink reads",
                )
            elif complete:
                yield SpecError(
                    f'{node.kind} "{node.name}" reads "{scalar.written}", '
                    "and there is no such source or transform",
                    code="unknown-input",
                    where=scalar.location,
                    hint=did_you_mean(scalar.text, others),
                )


def _read_twice(node: Wired) -> Iterator[SpecError]:
    for index, scalar in enumerate(node.inputs):
        if scalar.text in {each.text for each in node.inputs[:index]}:
            yield SpecError(
                f'{node.kind} "{node.name}" reads "{scalar.written}" twice',
                code="duplicate-input",
                where=scalar.location,
            )


def _cycles(every: list[Wired]) -> Iterator[SpecError]:
    transforms = {node.name: node for node in every if node.kind == "transform"}
    graph = {name: {s.text for s in node.inputs} for name, node in transforms.items()}
    while True:
        try:
            TopologicalSorter(graph).prepare()
            return
        except CycleError as error:
            ring = list(error.args[1])
        first = min(ring, key=list(transforms).index)
        start = ring.index(first)
        turned = [*ring[start:-1], *ring[:start], first]
        reads = next(s for s in transforms[first].inputs if s.text == turned[-2])
        yield SpecError(
            f"the data would run in a circle: {' -> '.join(turned)}"
            if len(turned) > 2
            else f'transform "{first}" reads itself',
            code="cycle",
            where=reads.location,
        )
        graph = {name: below for name, below in graph.items() if name not in ring}
