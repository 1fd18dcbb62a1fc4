"""Events of the YAML parser to the tree: aliases, merge keys, doubled keys, limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from penstock.core.errors import SpecError
from penstock.spec import syntax, yaml12
from penstock.spec.nodes import Entry, File, Mapping, Node, Scalar, Sequence, Span

DEEPEST = 100
MOST_NODES = 200_000
_ODD_BLANKS = {"\xa0", "\u2002", "\u2003", "\u2009", "\u202f", "\u3000", "\u200b", "\ufeff"}
_STR = "tag:yaml.org,2002:str"
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}


@dataclass
class _Open:
    """A map or list whose end has not come yet."""

    event: Any
    mapping: bool
    nodes: list[Node] = field(default_factory=list)
    size: int = 1


class Composer:
    """Builds the tree of one file; mistakes that do not end the reading are in `mistakes`."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.mistakes: list[SpecError] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._nodes = 0
        self._stack: list[_Open] = []

    def compose(self) -> Node | None:
        """The root, or None where the file has none. Raises SpecError."""
        stack = self._stack
        root: Node | None = None
        for event in self._events():
            kind = type(event).__name__
            if kind in {"MappingStartEvent", "SequenceStartEvent"}:
                stack.append(self._opened(event, len(stack)))
                continue
            if kind in {"MappingEndEvent", "SequenceEndEvent"}:
                opened = stack.pop()
                node, size = self._closed(opened, event), opened.size
                self._remember(opened.event, node, size)
            elif kind == "ScalarEvent":
                node, size = self._scalar(event), 1
                self._remember(event, node, size)
            elif kind == "AliasEvent":
                node, size = self._alias(event)
            else:
                self._boundary(kind, event, root)
                continue
            self._count(event, size)
            if stack:
                stack[-1].nodes.append(node)
                stack[-1].size += size
            else:
                root = node
        return root

    def _events(self) -> Iterator[Any]:
        try:
            yield from YAML(typ="safe", pure=True).parse(self.file.text)
        except MarkedYAMLError as error:
            raise syntax.explain(error, self.file, self._bracket()) from None
        except (YAMLError, ValueError, IndexError, RecursionError) as error:
            raise SpecError(f"not YAML: {error}", code="invalid-yaml") from None

    def _bracket(self) -> int | None:
        """Where the innermost list or map between brackets begins that is still open."""
        open_ones = (each.event for each in reversed(self._stack) if each.event.flow_style)
        return next((int(event.start_mark.index) for event in open_ones), None)

    def _boundary(self, kind: str, event: Any, root: Node | None) -> None:
        if kind == "DocumentStartEvent" and root is not None:
            raise SpecError(
                "a file has one pipeline, and this begins another",
                code="several-documents",
                where=self._where(event),
                hint='remove "---", or use a file for each',
            )

    def _where(self, event: Any) -> Any:
        return self.file.location(event.start_mark.index, event.end_mark.index)

    def _opened(self, event: Any, depth: int) -> _Open:
        if depth >= DEEPEST:
            raise SpecError(
                f"more than {DEEPEST} maps and lists in one another",
                code="too-deep",
                where=self._where(event),
            )
        if event.anchor:
            self._anchors[event.anchor] = None
        return _Open(event, type(event).__name__ == "MappingStartEvent")

    def _closed(self, opened: _Open, end: Any) -> Node:
        start = opened.event.start_mark.index
        flow = bool(opened.event.flow_style)
        first = opened.nodes[0] if opened.nodes else None
        stop = end.end_mark.index if flow else start + 1
        if opened.mapping and not flow and isinstance(first, Scalar) and first.span:
            stop = first.span.end
        location = self.file.location(start, stop)
        if opened.mapping:
            entries = self._entries(opened.nodes)
            return Mapping(tuple(entries), location, self.file.base, flow)
        return Sequence(tuple(opened.nodes), location, self.file.base, flow)

    def _scalar(self, event: Any) -> Scalar:
        start, end = event.start_mark.index, event.end_mark.index
        plain = event.style is None and event.implicit[0]
        tag = None if event.implicit[0] or event.implicit[1] else str(event.tag)
        block = event.style in {"|", ">"}
        if tag is not None and tag not in _TAGS:
            self.mistakes.append(syntax.unknown_tag(self.file, start, end))
        return Scalar(
            yaml12.resolve(event.value) if plain or (tag and tag != _STR) else event.value,
            event.value,
            event.value,
            self.file.location(start, start + 1 if block else end),
            self.file.base,
            plain,
            Span(self.file, start, end, block),
        )

    def _alias(self, event: Any) -> tuple[Node, int]:
        known = self._anchors.get(event.anchor)
        if known is not None:
            return known
        if event.anchor in self._anchors:
            raise SpecError(
                f'"*{event.anchor}" stands within what it repeats',
                code="endless-alias",
                where=self._where(event),
            )
        raise syntax.unknown_alias(event.anchor, self._anchors, self._where(event))

    def _remember(self, event: Any, node: Node, size: int) -> None:
        if event.anchor:
            self._anchors[event.anchor] = (node, size)

    def _count(self, event: Any, size: int) -> None:
        self._nodes += size
        if self._nodes > MOST_NODES:
            raise SpecError(
                f"the file has more than {MOST_NODES:,} values, repeated ones counted",
                code="too-many-values",
                where=self._where(event),
                hint="data belongs in a file of its own",
            )

    def _entries(self, nodes: list[Node]) -> list[Entry]:
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in zip(nodes[::2], nodes[1::2], strict=True):
            if not isinstance(key, Scalar):
                self.mistakes.append(syntax.key_not_text(key))
            elif key.plain and key.written == "<<":
                for entry in self._merge(key, value):
                    merged.setdefault(entry.name, entry)
            elif key.written[:1] in _ODD_BLANKS:
                self.mistakes.append(syntax.odd_blank(key))
            elif key.written in own:
                self.mistakes.append(doubled(own[key.written].key, key))
            else:
                own[key.written] = Entry(key, value)
        rest = [entry for name, entry in merged.items() if name not in own]
        return [*own.values(), *rest]

    def _merge(self, key: Scalar, value: Node) -> Iterator[Entry]:
        parts = value.items if isinstance(value, Sequence) else (value,)
        for part in parts:
            if isinstance(part, Mapping):
                yield from part.entries
                continue
            self.mistakes.append(
                SpecError(
                    '"<<" merges a map, or a list of maps',
                    code="invalid-yaml",
                    where=key.location,
                    hint="as in <<: *defaults, with &defaults at a map above",
                )
            )


def doubled(first: Scalar, second: Scalar, what: str = "key") -> SpecError:
    """The mistake that a key is there twice, with both places."""
    return SpecError(
        f'the {what} "{second.written}" is there twice',
        code="duplicate-key",
        where=second.location,
        hint=f"first at {first.location}",
    )
