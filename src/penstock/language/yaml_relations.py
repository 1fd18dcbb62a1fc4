"""The nodes of a YAML text."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.language.relations import Kind, Relation, declared_columns
from penstock.language.yaml_entry import Entry
from penstock.plan.explain import Column

SECTIONS: dict[str, Kind] = {"sources": "source", "transforms": "transform", "sinks": "sink"}
_KEEP_COLUMNS = frozenset({"filter", "dedupe", "sample", "log", "expect", "route", "mask"})


def yaml_relations(text: str, root: Entry) -> Iterator[Relation]:
    """Yields the nodes of a text in their order."""
    for section, kind in SECTIONS.items():
        holder = root.child(section)
        for entry in holder.children if holder else ():
            if isinstance(entry.step, str) and not entry.is_stub:
                yield from _relations(text, kind, entry)


def value_text(text: str, entry: Entry | None) -> str | None:
    """Returns the text of a scalar, also of one of several lines; None for a map or a list."""
    if entry is None or entry.children:
        return None
    if entry.value is not None:
        return entry.value
    written = text[entry.value_start : entry.value_end]
    return written if written and not entry.is_flow else None


def names_of(entry: Entry | None) -> tuple[str, ...]:
    """Returns the name or the list of names at an entry."""
    if entry is None:
        return ()
    if entry.value is not None:
        return (entry.value,)
    return tuple(each.value for each in entry.children if each.value)


def _relations(text: str, kind: Kind, entry: Entry) -> Iterator[Relation]:
    type_ = entry.text_of("type") or ""
    query = value_text(text, entry.child("sql")) if kind == "transform" else None
    node = Relation(
        str(entry.step), kind, type_, entry.key_start, entry.key_end,
        columns=_schema(text, entry.child("schema")), query=query,
        inputs=names_of(entry.child("from")), keeps_columns=type_ in _KEEP_COLUMNS,
    )  # fmt: skip
    yield node
    outputs = entry.child("outputs") if type_ == "route" else None
    for output in outputs.children if outputs else ():
        yield Relation(
            f"{entry.step}.{output.step}", kind, type_, output.key_start, output.key_end,
            inputs=node.inputs, keeps_columns=True,
        )  # fmt: skip


def _schema(text: str, entry: Entry | None) -> tuple[Column, ...] | None:
    """Returns the declared columns: of a text, or of a map of name to type."""
    if entry is None:
        return None
    if entry.children:
        return tuple(Column(str(each.step), each.value or "") for each in entry.children)
    declared = value_text(text, entry)
    return declared_columns(declared) if declared else None
