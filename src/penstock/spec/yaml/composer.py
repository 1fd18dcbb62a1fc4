"""From events of the YAML parser to a tree: aliases, merge keys, duplicate keys, limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from penstock.core.errors import SpecError
from penstock.spec.tree import scalars
from penstock.spec.tree.document import duplicate_key_error
from penstock.spec.tree.nodes import Entry, File, MappingNode, Node, ScalarNode, SequenceNode, Span
from penstock.spec.yaml import syntax

MAX_DEPTH = 100
MAX_NODES = 200_000
_ODD_BLANKS = {"\xa0", "\u2002", "\u2003", "\u2009", "\u202f", "\u3000", "\u200b", "\ufeff"}
_STR = "tag:yaml.org,2002:str"
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")}


@dataclass
class _OpenNode:
    """A map or list before its end event."""

    event: Any
    mapping: bool
    nodes: list[Node] = field(default_factory=list)
    size: int = 1


class Composer:
    """A builder of the tree of one file. Errors that do not end parsing are in `errors`."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.errors: list[SpecError] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._nodes = 0
        self._quoted: list[Span] = []
        self._stack: list[_OpenNode] = []

    def compose(self) -> Node | None:
        """Returns the root, or None if the file is empty. Raises SpecError."""
        stack = self._stack
        root: Node | None = None
        for event in self._events():
            kind = type(event).__name__
            if kind in {"MappingStartEvent", "SequenceStartEvent"}:
                stack.append(self._open_node(event, len(stack)))
                continue
            if kind in {"MappingEndEvent", "SequenceEndEvent"}:
                opened = stack.pop()
                node, size = self._close_node(opened, event), opened.size
                self._add_anchor(opened.event, node, size)
            elif kind == "ScalarEvent":
                node, size = self._scalar(event), 1
                self._add_anchor(event, node, size)
            elif kind == "AliasEvent":
                node, size = self._alias(event)
            else:
                self._check_document(kind, event, root)
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
            raise syntax.explain(error, self.file, self._bracket(), self._quoted) from None
        except Exception as error:  # The parser also raises errors of Python, such as assertions.
            raise syntax.unparsable(error, self.file) from None

    def _bracket(self) -> int | None:
        """Returns the start of the innermost open list or map between brackets."""
        open_events = (node.event for node in reversed(self._stack) if node.event.flow_style)
        return next((int(event.start_mark.index) for event in open_events), None)

    def _check_document(self, kind: str, event: Any, root: Node | None) -> None:
        if kind == "DocumentStartEvent" and root is not None:
            raise SpecError(
                "expected one pipeline in a file, found a second document",
                code="several-documents",
                where=self._where(event),
                hint='remove "---", or write each pipeline to its own file',
            )

    def _where(self, event: Any) -> Any:
        return self.file.location(event.start_mark.index, event.end_mark.index)

    def _open_node(self, event: Any, depth: int) -> _OpenNode:
        if depth >= MAX_DEPTH:
            raise SpecError(
                f"maps and lists are nested deeper than {MAX_DEPTH} levels",
                code="too-deep",
                where=self._where(event),
            )
        if event.anchor:
            self._anchors[event.anchor] = None
        return _OpenNode(event, type(event).__name__ == "MappingStartEvent")

    def _close_node(self, opened: _OpenNode, end: Any) -> Node:
        start = opened.event.start_mark.index
        flow = bool(opened.event.flow_style)
        first = opened.nodes[0] if opened.nodes else None
        stop = end.end_mark.index if flow else start + 1
        if opened.mapping and not flow and isinstance(first, ScalarNode) and first.span:
            stop = first.span.end
        location = self.file.location(start, stop)
        if opened.mapping:
            entries = self._entries(opened.nodes)
            return MappingNode(tuple(entries), location, self.file.base, flow)
        return SequenceNode(tuple(opened.nodes), location, self.file.base, flow)

    def _scalar(self, event: Any) -> ScalarNode:
        start, end = event.start_mark.index, event.end_mark.index
        plain = event.style is None and event.implicit[0]
        tag = None if event.implicit[0] or event.implicit[1] else str(event.tag)
        block = event.style in {"|", ">"}
        span = Span(self.file, start, end, block)
        if event.style in {"'", '"'}:
            self._quoted.append(span)
        if tag is not None and tag not in _TAGS:
            self.errors.append(syntax.unknown_tag(self.file, start, end))
        return ScalarNode(
            scalars.resolve(event.value) if plain or (tag and tag != _STR) else event.value,
            event.value,
            event.value,
            self.file.location(start, start + 1 if block else end),
            self.file.base,
            plain,
            span,
        )

    def _alias(self, event: Any) -> tuple[Node, int]:
        known = self._anchors.get(event.anchor)
        if known is not None:
            return known
        if event.anchor in self._anchors:
            raise SpecError(
                f'the alias "*{event.anchor}" refers to a map or list that contains it',
                code="endless-alias",
                where=self._where(event),
            )
        raise syntax.unknown_alias(event.anchor, self._anchors, self._where(event))

    def _add_anchor(self, event: Any, node: Node, size: int) -> None:
        if event.anchor:
            self._anchors[event.anchor] = (node, size)

    def _count(self, event: Any, size: int) -> None:
        self._nodes += size
        if self._nodes > MAX_NODES:
            raise SpecError(
                f"the file has more than {MAX_NODES:,} values, including aliases",
                code="too-many-values",
                where=self._where(event),
                hint="move data to another file",
            )

    def _entries(self, nodes: list[Node]) -> list[Entry]:
        entries: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in zip(nodes[::2], nodes[1::2], strict=True):
            if not isinstance(key, ScalarNode):
                self.errors.append(syntax.key_not_text(key))
            elif key.plain and key.written == "<<":
                for entry in self._merge(key, value):
                    merged.setdefault(entry.name, entry)
            elif key.written[:1] in _ODD_BLANKS:
                self.errors.append(syntax.odd_blank(key))
            elif key.written in entries:
                self.errors.append(duplicate_key_error(entries[key.written].key, key))
            else:
                entries[key.written] = Entry(key, value)
        inherited = [entry for name, entry in merged.items() if name not in entries]
        return [*entries.values(), *inherited]

    def _merge(self, key: ScalarNode, value: Node) -> Iterator[Entry]:
        parts = value.items if isinstance(value, SequenceNode) else (value,)
        for part in parts:
            if isinstance(part, MappingNode):
                yield from part.entries
                continue
            self.errors.append(
                SpecError(
                    'expected a map or a list of maps as the value of "<<"',
                    code="invalid-yaml",
                    where=key.location,
                    hint="write <<: *defaults, with &defaults at a map above",
                )
            )
