"""Unused nodes and outputs, and names in SQL that are no node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from penstock.core.errors import SpecError
from penstock.spec.front_end import document_front_end
from penstock.spec.graph import NodeRef, is_dynamic_table, list_nodes, readable_names
from penstock.spec.source_map import SourceMap
from penstock.sql.dialect.outputs import with_outputs
from penstock.sql.facts import Facts, parse_facts


def find_unused(source_map: SourceMap) -> Iterator[SpecError]:
    """Yields a warning for each source, transform and output that no node reads.

    A transform without `from` reads the relations of its SQL. Without SQL that can be parsed, any
    word in its texts counts as an input.
    """
    nodes = list_nodes(source_map)
    known = readable_names(nodes) | {node.name for node in nodes}
    used = {name.casefold() for node in nodes for name in node.input_names}
    for node in nodes:
        if node.kind == "transform" and not node.inputs:
            used |= _possible_inputs(node.data, known) - {node.name.casefold()}
    tables = {node.name.casefold() for node in nodes if is_dynamic_table(node)}
    for node in nodes if tables else ():
        if node.kind == "transform":
            used |= tables & _words(node.data) - {node.name.casefold()}
    for node in nodes:
        unread = [name for name in node.readable if name.casefold() not in used]
        if node.outputs and len(unread) < len(node.outputs):
            yield from _unused_outputs(source_map, node, unread)
        elif unread:
            where = source_map.key(node.route)
            if is_dynamic_table(node):
                yield SpecError(
                    f'no SQL checks the dynamic table "{node.name}"',
                    code="unused-transform",
                    where=where,
                    hint=f"call dynamic_table_check('{node.name}', value) in a transform",
                )
                continue
            hint = document_front_end(where.file).hints.get(
                "unread", 'add "from: {node}" to a sink or a transform'
            )
            yield SpecError(
                f'no node reads {node.kind} "{node.name}"',
                code="unused-source" if node.kind == "source" else "unused-transform",
                where=where,
                hint=hint.replace("{node}", unread[0]),
            )


def _unused_outputs(
    source_map: SourceMap, node: NodeRef, unread: Iterable[str]
) -> Iterator[SpecError]:
    for name in unread:
        route = (*node.route, "outputs", name.removeprefix(f"{node.name}."))
        default = source_map.value((*node.route, "default"))
        where = default if source_map.find(route) is None else source_map.key(route)
        yield SpecError(
            f'no node reads "{name}": its rows are dropped',
            code="unused-output",
            where=where,
            hint=f'add "from: {name}" to a sink or a transform, or remove the output',
        )


def reads_unknown_relations(source_map: SourceMap) -> bool:
    """Returns whether the SQL of a transform names a relation that is no node.

    The relations of a SQL text that cannot be analyzed are not known, and have no such error.
    """
    nodes = list_nodes(source_map)
    known = {name.casefold() for name in readable_names(nodes)}
    known |= {node.name.casefold() for node in nodes}
    return any(
        _relations(node.data, frozenset(known)) - known
        for node in nodes
        if node.kind == "transform" and not node.inputs
    )


def _possible_inputs(data: Any, known: frozenset[str]) -> set[str]:
    facts = _facts(data)
    return _words(data) if facts is None else {each.casefold() for each in facts.relations(known)}


def _relations(data: Any, known: frozenset[str]) -> set[str]:
    facts = _facts(data)
    return set() if facts is None else {each.casefold() for each in facts.relations(known)}


def _facts(data: Any) -> Facts | None:
    """Returns the facts of the SQL of a transform; None for one that cannot be analyzed."""
    text = data.get("sql") if isinstance(data, dict) else None
    facts = parse_facts(with_outputs(text)) if isinstance(text, str) else None
    return None if facts is None or facts.tree is None else facts


def _words(data: Any) -> set[str]:
    if isinstance(data, str):
        words = [*re.findall(r"\w+", data), *re.findall(r"\w+\.\w+", data)]
        return {word.casefold() for word in words}
    values = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return {word for value in values for word in _words(value)}
