"""The place of a cursor in the outline of a YAML text: a key or a value."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.language.document import Document
from penstock.language.yaml_entry import Entry


@dataclass(frozen=True)
class YamlPlace:
    """A place in a YAML text.

    `holder` is the map or list around a key or an item, and the entry of a value. `text[start:end]`
    is the key or the scalar at the cursor, which may be empty.
    """

    holder: Entry
    is_key: bool
    start: int
    end: int
    entry: Entry | None = None
    """The key at the cursor, if there is one."""
    is_text: bool = False
    """Whether the value is a block or spans several lines."""


def place_at(document: Document, root: Entry, index: int) -> YamlPlace | None:
    """Returns the place of an index; None in a comment."""
    line_start = document.starts[document.position(index).line - 1]
    before = document.text[line_start:index]
    entries = [*root.walk()]
    for entry in entries:
        if _is_in_text(entry, document, index):
            return YamlPlace(entry, False, entry.value_start, entry.value_end, is_text=True)
    if before.lstrip().startswith("#") or " #" in before:
        return None
    flows = [e for e in (root, *entries) if e.is_flow and _is_inside(document, e, index)]
    if flows:
        return _in_flow(document, flows[-1], index)
    on_line = [e for e in entries if line_start <= e.key_start <= index and not _is_item_start(e)]
    if on_line:
        return _beside(document, on_line[-1], index)
    return _on_blank(entries, root, index, len(before))


def _is_in_text(entry: Entry, document: Document, index: int) -> bool:
    if entry.is_block:
        return entry.value_start <= index <= max(entry.value_end - 1, entry.value_start)
    is_long = entry.value is None and not entry.is_flow and entry.value_end > entry.value_start
    return is_long and entry.value_start <= index <= entry.value_end


def _is_inside(document: Document, entry: Entry, index: int) -> bool:
    """Returns whether an index is between the brackets of a flow value."""
    is_open = entry.value_end - entry.value_start < 2
    is_closed = not is_open and document.text[entry.value_end - 1] in "}]"
    end = entry.value_end - 1 if is_closed else entry.value_end
    return entry.value_start < index <= end


def _is_item_start(entry: Entry) -> bool:
    return isinstance(entry.step, int) and entry.value is None and bool(entry.children)


def _in_flow(document: Document, holder: Entry, index: int) -> YamlPlace:
    for child in holder.children:
        if isinstance(child.step, str) and child.key_start <= index <= child.key_end:
            return YamlPlace(holder, True, child.key_start, child.key_end, child)
        if child.value_start <= index <= child.value_end and child.value is not None:
            return YamlPlace(child, False, child.value_start, child.value_end)
    text = document.text
    last = index - 1
    while text[last] in " \t\r\n":
        last -= 1
    if text[last] == ":":
        found = [each for each in holder.children if each.key_end <= last]
        return YamlPlace(found[-1] if found else holder, False, index, index)
    return YamlPlace(holder, text[holder.value_start] == "{", index, index)


def _beside(document: Document, entry: Entry, index: int) -> YamlPlace:
    """Returns the place on a line that has a key or an item."""
    assert entry.parent is not None
    if isinstance(entry.step, int):
        start = max(entry.value_start, entry.key_end)
        return YamlPlace(entry, True, start if entry.value else index, max(entry.value_end, index))
    if index <= entry.key_end:
        return YamlPlace(entry.parent, True, entry.key_start, entry.key_end, entry)
    if entry.value is None or index < entry.value_start:
        return YamlPlace(entry, False, index, index)
    return YamlPlace(entry, False, entry.value_start, max(entry.value_end, index))


def _on_blank(entries: list[Entry], root: Entry, index: int, column: int) -> YamlPlace:
    """Returns the place on a blank line, whose indentation selects the map."""
    before = [entry for entry in entries if entry.key_start < index and not _in_any_flow(entry)]
    holder = before[-1] if before else root
    while holder.parent is not None and not (holder.indent < column and holder.value is None):
        holder = holder.parent
    if holder.is_block or holder.is_flow:
        holder = holder.parent or root
    return YamlPlace(holder, True, index, index)


def _in_any_flow(entry: Entry) -> bool:
    parent = entry.parent
    while parent is not None and parent.parent is not None:
        if parent.is_flow:
            return True
        parent = parent.parent
    return False
