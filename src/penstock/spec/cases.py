"""The names that test cases use."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.core.errors import SpecError
from penstock.core.text import did_you_mean
from penstock.spec.document import Document
from penstock.spec.nodes import Entry, Mapping, Node, Scalar, Sequence
from penstock.spec.subject import about
from penstock.spec.wiring import nodes


def cases(document: Document) -> Iterator[SpecError]:
    """Names in `given`, `expect` and `dead_letters` that the pipeline does not have."""
    kinds = {node.name: node.kind for node in nodes(document)}
    tests = document.root.get("tests")
    for index, test in enumerate(tests.items if isinstance(tests, Sequence) else ()):
        subject, _ = about(document, ("tests", index))
        for entry in _entries(test, "given"):
            if kinds.get(entry.name) != "source":
                yield _given(subject, entry, kinds)
        for entry in _entries(test, "expect"):
            if entry.name not in kinds:
                yield _unknown(subject, entry.key, kinds)
        for scalar in _failing(test):
            if scalar.text not in kinds:
                yield _unknown(subject, scalar, kinds)


def _entries(test: Node, key: str) -> tuple[Entry, ...]:
    node = test.get(key) if isinstance(test, Mapping) else None
    return node.entries if isinstance(node, Mapping) else ()


def _failing(test: Node) -> Iterator[Scalar]:
    letters = test.get("dead_letters") if isinstance(test, Mapping) else None
    for letter in letters.items if isinstance(letters, Sequence) else ():
        node = letter.get("node") if isinstance(letter, Mapping) else None
        if isinstance(node, Scalar) and isinstance(node.value, str) and not node.broken:
            yield node


def _given(subject: str, entry: Entry, kinds: dict[str, str]) -> SpecError:
    sources = [name for name, kind in kinds.items() if kind == "source"]
    kind = kinds.get(entry.name)
    message = (
        f'{subject} gives rows to "{entry.name}", which is a {kind}; rows are given to sources'
        if kind
        else f'{subject} gives rows to "{entry.name}", and there is no such source'
    )
    return SpecError(
        message,
        code="unknown-node",
        where=entry.key.location,
        hint=did_you_mean(entry.name, sources),
    )


def _unknown(subject: str, name: Scalar, kinds: dict[str, str]) -> SpecError:
    return SpecError(
        f'{subject} names "{name.written}", and there is no such node',
        code="unknown-node",
        where=name.location,
        hint=did_you_mean(name.text, kinds),
    )
