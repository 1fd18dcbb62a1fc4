"""Proposals in YAML: options, values, types, nodes, columns, and SQL in values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from penstock.language.document import Document
from penstock.language.functions import FunctionHelp
from penstock.language.model import Completion, Completions
from penstock.language.option_completion import (
    option_detail,
    option_text,
    type_completions,
    type_options,
    value_completions,
)
from penstock.language.options import KnownOption, holder_of, options_at
from penstock.language.relations import Relations
from penstock.language.sql_completion import (
    column_completion,
    complete_sql,
    matching,
    node_completion,
)
from penstock.language.yaml_entry import Entry
from penstock.language.yaml_place import YamlPlace, place_at
from penstock.language.yaml_relations import SECTIONS, names_of
from penstock.plan.explain import Column
from penstock.sdk.registry import Kind, types

_SQL = frozenset({"sql", "where", "expression", "bound"})
_SQL_MAPS = frozenset({"set", "outputs", "rules"})
_COLUMNS = frozenset({
    "column", "columns", "keys", "by", "on", "primary_key", "time", "group_by", "partition_by",
    "tags", "timestamp", "update_where", "column_types", "key_columns",
})  # fmt: skip
"""The options whose values, or keys of whose maps, are columns; also those that end in _column."""
_KINDS: dict[str, Kind] = {
    "sources": "source", "transforms": "transform", "sinks": "sink", "side_outputs": "side_output",
    "dead_letter": "sink", "connections": "source",
}  # fmt: skip


class YamlCompleter:
    """Proposals at places of one text."""

    def __init__(
        self, document: Document, root: Entry, relations: Relations,
        functions: Sequence[FunctionHelp] = (),
    ) -> None:  # fmt: skip
        self._document, self._root = document, root
        self._relations, self._functions = relations, functions

    def complete(self, index: int) -> Completions | None:
        """Returns the proposals at an index; None where nothing is proposed."""
        place = place_at(self._document, self._root, index)
        if place is None:
            return None
        if not place.is_key and is_sql(place.holder):
            return self._sql(place, index)
        if place.is_text:
            return None
        word = self._document.text[place.start : index].lstrip("\"'")
        items = self._keys(place) if place.is_key else self._values(place)
        return Completions(
            self._document.range(place.start, place.end), tuple(matching(items, word))
        )

    def _sql(self, place: YamlPlace, index: int) -> Completions | None:
        start, end = place.start, place.end
        text = self._document.text[start:end]
        quotes = text[:1] in ("'", '"') and not place.is_text
        start += quotes
        end -= quotes and len(text) > 1 and text[-1] == text[0]
        found = complete_sql(
            self._document.text[start:end], index - start, self._relations,
            inputs=self._inputs(place.holder), functions=self._functions,
        )  # fmt: skip
        if found is None:
            return None
        return Completions(
            self._document.range(start + found[0], start + found[1]), tuple(found[2])
        )

    def _inputs(self, entry: Entry) -> Sequence[str]:
        """Returns the nodes whose columns an expression reads; none for a query."""
        return () if entry.step == "sql" else column_owners(entry)

    def _keys(self, place: YamlPlace) -> Iterator[Completion]:
        holder = place.holder
        if isinstance(holder.step, int) and not holder.children and holder.parent is not None:
            yield from self._list_values(holder.parent)
        taken = {each.step for each in holder.children if each is not place.entry}
        if len(holder.route) == 1 and holder.step in (*SECTIONS, "side_outputs"):
            yield from _new_nodes(_KINDS[str(holder.step)], self._needs_colon(place))
        if holder.route[:1] == ("tests",) and holder.step in ("given", "expect"):
            yield from self._nodes_of_tests(holder, taken, place)
        if is_column_option(holder) and holder.route[:1] != ("tests",):
            yield from self._columns(holder, taken)
        if holder.step == "phases" or self._is_list(holder):
            return
        for known in options_at(holder, self._root).values():
            if known.name not in taken:
                yield self._option(known, place)
        if holder_of(holder, self._root).kind == "format" and "type" not in taken:
            yield from self._of_keys([("type", "the type of the format")], place)

    @staticmethod
    def _is_list(holder: Entry) -> bool:
        return holder.is_flow and bool(holder.children) and isinstance(holder.children[0].step, int)

    def _needs_colon(self, place: YamlPlace) -> bool:
        """Returns whether the key at a place has no colon yet."""
        return self._document.text[place.end : place.end + 1] != ":"

    def _option(self, known: KnownOption, place: YamlPlace) -> Completion:
        text, is_map = known.name, known.option.type.startswith("map")
        if self._needs_colon(place):
            text += ":\n  $0" if is_map and not place.holder.is_flow else ": "
        return Completion(
            known.name, "option", text, option_detail(known), option_text(known), "$0" in text
        )

    def _of_keys(self, names: Iterable[tuple[str, str]], place: YamlPlace) -> Iterator[Completion]:
        colon = ": " if self._needs_colon(place) else ""
        yield from (Completion(name, "option", name + colon, detail) for name, detail in names)

    def _nodes_of_tests(
        self, holder: Entry, taken: set[str | int], place: YamlPlace
    ) -> Iterator[Completion]:
        names = (
            (node.name, f"{node.kind} {node.type}")
            for node in self._relations.nodes
            if node.name not in taken and (holder.step == "expect" or node.kind == "source")
        )
        yield from self._of_keys(names, place)

    def _columns(self, entry: Entry, taken: Iterable[str | int] = ()) -> Iterator[Completion]:
        for column in self._columns_of(column_owners(entry)):
            if column.name not in taken:
                yield column_completion(column)

    def _columns_of(self, names: Iterable[str]) -> Iterator[Column]:
        for name in names:
            yield from self._relations.columns(name) or ()

    def _values(self, place: YamlPlace) -> Iterator[Completion]:
        entry = place.holder
        if isinstance(entry.step, int) and entry.parent is not None:
            yield from self._list_values(entry.parent)
            return
        yield from self._list_values(entry)

    def _list_values(self, entry: Entry) -> Iterator[Completion]:
        """Yields the values of an option, or of the items of its list."""
        holder = entry.parent
        if holder is None or not isinstance(entry.step, str):
            return
        found = holder_of(holder, self._root)
        if entry.step == "type" and found.kind is not None:
            yield from type_completions(found.kind)
        elif entry.step == "format" and len(holder.route) == 2:
            yield from type_completions("format")
        elif entry.step == "type" and holder.route[:1] == ("connections",):
            yield from type_completions("source")
        elif entry.step == "connection":
            connections = self._root.child("connections")
            for each in connections.children if connections else ():
                yield Completion(str(each.step), "value", str(each.step), "connection")
        elif entry.step == "from" or (entry.step == "table" and self._is_lookup(holder)):
            yield from self._nodes(holder, tables=entry.step == "table")
        elif known := options_at(holder, self._root).get(entry.step):
            yield from value_completions(known)
        if is_column_option(entry):
            yield from self._columns(entry)

    @staticmethod
    def _is_lookup(holder: Entry) -> bool:
        return holder.text_of("type") == "lookup"

    def _nodes(self, holder: Entry, *, tables: bool) -> Iterator[Completion]:
        name = str(holder.step).lower()
        for node in self._relations.readable():
            is_own = holder.route[0] == "transforms" and node.name.lower() == name
            if not is_own and (node.kind == "source" or not tables):
                yield node_completion(node, self._relations)


def is_sql(entry: Entry) -> bool:
    """Returns whether the value of an entry is a query or an expression of SQL."""
    route = entry.route
    if len(route) < 3 or route[0] not in _KINDS or entry.children:
        return False
    holder = entry.parent
    assert holder is not None
    if entry.step in _SQL:
        return True
    if holder.step == "columns" and holder.parent is not None:
        return holder.parent.text_of("type") == "select"
    return holder.step in _SQL_MAPS


def is_column_option(entry: Entry) -> bool:
    """Returns whether the values of an option, or the keys of its map, are columns."""
    name = str(entry.step)
    is_option = len(entry.route) >= 3 and entry.route[0] in SECTIONS
    return is_option and (name in _COLUMNS or name.endswith(("_column", "_columns")))


def column_owners(entry: Entry) -> tuple[str, ...]:
    """Returns the nodes with the columns that an option of a node names."""
    node = entry
    while node.parent is not None and len(node.route) > 2:
        node = node.parent
    is_own = node.route[0] == "sources" or "watermark" in entry.route
    return (str(node.step),) if is_own else names_of(node.child("from"))


def _new_nodes(kind: Kind, needs_colon: bool) -> Iterator[Completion]:
    """Yields snippets of nodes with their required options."""
    for type_ in types(kind) if needs_colon else ():
        has_input = kind != "source" and (kind, type_) != ("transform", "sql")
        names = dict.fromkeys([*(["from"] if has_input else []), *type_options(kind, type_)])
        lines = [f"  {name}: ${{{number}}}" for number, name in enumerate(names, 2)]
        text = "\n".join([f"${{1:{type_}}}:", f"  type: {type_}", *lines])
        yield Completion(type_, "snippet", text, f"new {kind}", snippet=True)
