"""`--set a.b.c=value`: one value of the tree replaced from the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as Items
from collections.abc import Sequence as List
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.errors import PenstockError, SpecError
from penstock.core.text import did_you_mean
from penstock.spec.compose import Composer
from penstock.spec.document import Document
from penstock.spec.nodes import Entry, File, Mapping, Node, Scalar, Sequence, Span

Sets = Items[str, str] | List[str]

_STEP = re.compile(r'"([^"]*)"|\'([^\']*)\'|([^.="\']+)')
_ONE_KEY_BELOW = ("runtime", "spark")


@dataclass(frozen=True)
class _Set:
    """One `--set`, its text as a file of one line."""

    file: File
    steps: list[Scalar]
    value: Node


def apply_sets(document: Document, sets: Sets) -> tuple[Document, list[PenstockError]]:
    """The document with the values replaced or added, and what is wrong with `sets`."""
    mistakes: list[PenstockError] = []
    texts = [f"{k}={v}" for k, v in sets.items()] if isinstance(sets, Items) else list(sets)
    root: Node = document.root
    for text in texts:
        try:
            each = _parse(text)
            root = _put(root, each.steps, each.value, each)
        except SpecError as error:
            mistakes.append(error)
    assert isinstance(root, Mapping)
    return Document(root, document.files), mistakes


def _parse(text: str) -> _Set:
    file = File("--set", text, Path.cwd())
    steps, end = _steps(file)
    if not steps or text[end : end + 1] != "=":
        raise SpecError(
            "this is not path=value",
            code="invalid-set",
            where=file.location(0, len(text)),
            hint="as in sinks.table.mode=upsert",
        )
    return _Set(file, steps, _value(file, end + 1))


def _steps(file: File) -> tuple[list[Scalar], int]:
    """The keys of the path, and the index of what follows them."""
    steps: list[Scalar] = []
    here, text = 0, file.text
    while match := _STEP.match(text, here):
        if tuple(step.written for step in steps) == _ONE_KEY_BELOW and match[3]:
            stop = text.find("=", here)
            end = stop if stop >= 0 else len(text)
        else:
            end = match.end()
        group = next(each for each in (match[1], match[2], match[3]) if each is not None)
        name = group if match[3] is None else text[here:end].strip()
        plain, place = match[3] is not None, file.location(here, end)
        span = Span(file, here, end)
        steps.append(Scalar(name, name, name, place, file.base, plain, span))
        here = end
        if text[here : here + 1] != ".":
            break
        here += 1
    return steps, here


def _value(file: File, start: int) -> Node:
    """The value as YAML, with places in the text of the `--set`."""
    blank = File(file.name, " " * start + file.text[start:], file.base)
    if not file.text[start:].strip():
        return Scalar("", "", "", file.location(start), file.base, False, Span(file, start, start))
    composer = Composer(blank)
    try:
        node = composer.compose()
    except SpecError as error:
        raise _told(error, file) from None
    if composer.mistakes:
        raise _told(composer.mistakes[0], file)
    assert node is not None
    return _moved(node, file)


def _told(error: SpecError, file: File) -> SpecError:
    where = replace(error.where, text=file.text) if error.where else None
    return SpecError(error.message, code=error.code, where=where, hint=error.hint)


def _moved(node: Node, file: File) -> Node:
    """The tree with the places of `file`, whose text is the same but for the path."""
    location = replace(node.location, text=file.line(node.location.line))
    if isinstance(node, Scalar):
        span = replace(node.span, file=file) if node.span else None
        return replace(node, location=location, span=span)
    if isinstance(node, Sequence):
        items = tuple(_moved(item, file) for item in node.items)
        return replace(node, items=items, location=location)
    entries = tuple(
        Entry(_key(_moved(entry.key, file)), _moved(entry.value, file)) for entry in node.entries
    )
    return replace(node, entries=entries, location=location)


def _key(node: Node) -> Scalar:
    assert isinstance(node, Scalar)
    return node


def _put(node: Node | None, steps: list[Scalar], value: Node, each: _Set) -> Node:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if node is None or (isinstance(node, Scalar) and node.value is None):
        node = Mapping((), step.location, each.file.base)
    if isinstance(node, Mapping):
        return replace(node, entries=tuple(_entries(node, step, rest, value, each)))
    if isinstance(node, Sequence):
        return replace(node, items=_items(node, step, rest, value, each))
    raise SpecError(
        f'there is nothing below a value, so no "{step.written}"',
        code="invalid-set",
        where=step.location,
        hint=f"the value stands at {node.location}",
    )


def _entries(
    node: Mapping, step: Scalar, rest: list[Scalar], value: Node, each: _Set
) -> Iterator[Entry]:
    found = False
    for entry in node.entries:
        if entry.name == step.written:
            found = True
            yield Entry(step if not rest else entry.key, _put(entry.value, rest, value, each))
        else:
            yield entry
    if not found:
        yield Entry(step, _put(None, rest, value, each))


def _items(
    node: Sequence, step: Scalar, rest: list[Scalar], value: Node, each: _Set
) -> tuple[Node, ...]:
    index = int(step.written) if step.written.isdecimal() else len(node.items)
    if index >= len(node.items):
        known = [str(number) for number in range(len(node.items))]
        raise SpecError(
            f'the list has no item "{step.written}"',
            code="invalid-set",
            where=step.location,
            hint=did_you_mean(step.written, known) or "items count from 0",
        )
    items = list(node.items)
    items[index] = _put(items[index], rest, value, each)
    return tuple(items)
