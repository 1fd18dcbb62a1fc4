"""Overrides: `--set a.b.c=value` replaces or adds one value of the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as Items
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.errors import PenstockError, SpecError
from penstock.core.text import did_you_mean
from penstock.spec.documents.merge import NAMED
from penstock.spec.parsed import Overrides
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import Entry, File, MappingNode, Node, ScalarNode, SequenceNode, Span
from penstock.spec.yaml.composer import Composer

_STEP = re.compile(r'"([^"]*)"|\'([^\']*)\'|([^.="\']+)')
_ONE_KEY_BELOW = ("runtime", "spark")


@dataclass(frozen=True)
class _Override:
    """One override; its text is a file of one line."""

    file: File
    steps: list[ScalarNode]
    value: Node


def apply_overrides(
    document: Document, overrides: Overrides
) -> tuple[Document, list[PenstockError]]:
    """Returns the document with the overrides applied, and the errors of the overrides."""
    errors: list[PenstockError] = []
    texts = list(overrides)
    if isinstance(overrides, Items):
        texts = [f"{path}={value}" for path, value in overrides.items()]
    root: Node = document.root
    for text in texts:
        try:
            override = _parse(text)
            if document.missing and _names_unknown_node(document, override.steps):
                continue
            root = _set_value(root, override.steps, override.value, override)
        except SpecError as error:
            errors.append(error)
    assert isinstance(root, MappingNode)
    return replace(document, root=root), errors


def _names_unknown_node(document: Document, steps: list[ScalarNode]) -> bool:
    """Returns whether an override is of a node that may be in a part that could not be read."""
    if len(steps) < 3 or steps[0].written not in NAMED:
        return False
    return document.node((steps[0].written, steps[1].written)) is None


def _parse(text: str) -> _Override:
    file = File("--set", text, Path.cwd())
    steps, end = _steps(file)
    if not steps or text[end : end + 1] != "=":
        raise SpecError(
            "expected PATH=VALUE",
            code="invalid-set",
            where=file.location(0, len(text)),
            hint="write for example sinks.table.mode=upsert",
        )
    return _Override(file, steps, _value(file, end + 1))


def _steps(file: File) -> tuple[list[ScalarNode], int]:
    """Returns the keys of the path, and the index after the path."""
    steps: list[ScalarNode] = []
    position, text = 0, file.text
    while match := _STEP.match(text, position):
        if tuple(step.written for step in steps) == _ONE_KEY_BELOW and match[3]:
            stop = text.find("=", position)
            end = stop if stop >= 0 else len(text)
        else:
            end = match.end()
        group = next(name for name in match.groups() if name is not None)
        name = group if match[3] is None else text[position:end].strip()
        plain, location = match[3] is not None, file.location(position, end)
        span = Span(file, position, end)
        steps.append(ScalarNode(name, name, name, location, file.base, plain, span))
        position = end
        if text[position : position + 1] != ".":
            break
        position += 1
    return steps, position


def _value(file: File, start: int) -> Node:
    """Returns the value as YAML, with locations in the text of the override."""
    blank = File(file.name, " " * start + file.text[start:], file.base)
    if not file.text[start:].strip():
        return ScalarNode(
            "", "", "", file.location(start), file.base, False, Span(file, start, start)
        )
    composer = Composer(blank)
    try:
        node = composer.compose()
    except SpecError as error:
        raise _relocated_error(error, file) from None
    if composer.errors:
        raise _relocated_error(composer.errors[0], file)
    assert node is not None
    return _relocate(node, file)


def _relocated_error(error: SpecError, file: File) -> SpecError:
    where = replace(error.where, text=file.text) if error.where else None
    return SpecError(error.message, code=error.code, where=where, hint=error.hint)


def _relocate(node: Node, file: File) -> Node:
    """Returns the tree with locations in `file`, which has the same text after the path."""
    location = replace(node.location, text=file.line(node.location.line))
    if isinstance(node, ScalarNode):
        span = replace(node.span, file=file) if node.span else None
        return replace(node, location=location, span=span)
    if isinstance(node, SequenceNode):
        items = tuple(_relocate(item, file) for item in node.items)
        return replace(node, items=items, location=location)
    entries = tuple(
        Entry(_key(_relocate(entry.key, file)), _relocate(entry.value, file))
        for entry in node.entries
    )
    return replace(node, entries=entries, location=location)


def _key(node: Node) -> ScalarNode:
    assert isinstance(node, ScalarNode)
    return node


def _set_value(
    node: Node | None, steps: list[ScalarNode], value: Node, override: _Override
) -> Node:
    if not steps:
        return value
    step, remaining = steps[0], steps[1:]
    if node is None or (isinstance(node, ScalarNode) and node.value is None):
        node = MappingNode((), step.location, override.file.base)
    if isinstance(node, MappingNode):
        return replace(node, entries=tuple(_entries(node, step, remaining, value, override)))
    if isinstance(node, SequenceNode):
        return replace(node, items=_items(node, step, remaining, value, override))
    raise SpecError(
        f'expected a map or a list above "{step.written}", found a value',
        code="invalid-set",
        where=step.location,
        hint=f"set the value at {node.location} as a whole",
    )


def _entries(
    node: MappingNode,
    step: ScalarNode,
    remaining: list[ScalarNode],
    value: Node,
    override: _Override,
) -> Iterator[Entry]:
    exists = False
    for entry in node.entries:
        if entry.name == step.written:
            exists = True
            yield Entry(
                step if not remaining else entry.key,
                _set_value(entry.value, remaining, value, override),
            )
        else:
            yield entry
    if not exists:
        yield Entry(step, _set_value(None, remaining, value, override))


def _items(
    node: SequenceNode,
    step: ScalarNode,
    remaining: list[ScalarNode],
    value: Node,
    override: _Override,
) -> tuple[Node, ...]:
    index = int(step.written) if step.written.isdecimal() else len(node.items)
    if index >= len(node.items):
        known = [str(number) for number in range(len(node.items))]
        raise SpecError(
            f'expected an index of the list, found "{step.written}"',
            code="invalid-set",
            where=step.location,
            hint=did_you_mean(step.written, known) or "count items from 0",
        )
    items = list(node.items)
    items[index] = _set_value(items[index], remaining, value, override)
    return tuple(items)
