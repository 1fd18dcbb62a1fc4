"""Outline of a YAML text: keys, items and values with their places.

Works line by line on any text, also on one that a parser rejects: while it is typed, a text is
seldom valid. Anchors, tags and documents have no meaning here.
"""

from __future__ import annotations

import re
from functools import lru_cache

from penstock.language.document import Document
from penstock.language.yaml_entry import Entry, Step
from penstock.language.yaml_flow import find_end, read_flow

_KEY = re.compile(
    r"""(?P<key>"[^"]*"|'[^']*'|[^\s#&*!|>'"%@`{}\[\],:-][^:#{}\[\]]*?|-[^\s:][^:#]*?)"""
    r"""[ \t]*:(?=[ \t]|$)"""
)
_BLANKS = re.compile(r"[ \t]*")
_DASH = re.compile(r"-(?:[ \t]+|$)")
_BLOCK = re.compile(r"(?:[&!]\S*[ \t]+)*[|>][-+0-9]*[ \t]*(?:#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")


@lru_cache(maxsize=4)
def read_outline(document: Document) -> Entry:
    """Returns the root of the outline of a text."""
    return _Reader(document).read()


class _Reader:
    def __init__(self, document: Document) -> None:
        self._document, self._text = document, document.text
        self._root = Entry("", -1, 0, 0, 0, len(self._text), None, end=len(self._text))
        self._open = [self._root]
        self._number = 0

    def read(self) -> Entry:
        while self._number < len(self._document.starts):
            self._line()
        for entry in self._open:
            entry.end = len(self._text)
        return self._root

    def _line(self) -> None:
        number, line = self._number, self._document.line(self._number)
        self._number += 1
        start = self._document.starts[number]
        column = self._blanks(line, 0)
        if column == len(line) or line[column] == "#" or line.startswith(("---", "%")):
            return
        if self._continues(column, line):
            top = self._open[-1]
            top.value_end = top.end = start + len(line.rstrip())
            top.value = None
            return
        while match := _DASH.match(line, column):
            self._item(column, start + column)
            column = match.end()
        match = _KEY.match(line, column)
        if match is None:
            self._scalar(line, start, column)
            return
        self._close(column, is_item=False, index=start)
        key = match["key"].strip("\"'")
        entry = self._add(key, column, start + column, start + match.end("key"))
        self._value(entry, start, line, self._blanks(line, match.end()))

    @staticmethod
    def _blanks(line: str, column: int) -> int:
        match = _BLANKS.match(line, column)
        return match.end() if match else column

    def _continues(self, column: int, line: str) -> bool:
        """Returns whether a line belongs to the scalar of the line above."""
        top = self._open[-1]
        is_scalar = top.value is not None or top.value_end > top.value_start
        if not is_scalar or top.is_flow or top.is_block or column <= top.indent:
            return False
        return bool(top.value_end > top.value_start) and not _KEY.match(line, column)

    def _item(self, column: int, index: int) -> None:
        self._close(column, is_item=True, index=index)
        parent = self._open[-1]
        count = sum(isinstance(each.step, int) for each in parent.children)
        self._add(count, column, index, index + 1)

    def _close(self, column: int, *, is_item: bool, index: int) -> None:
        """Ends the entries that a new one at a column is not part of."""
        while len(self._open) > 1:
            top = self._open[-1]
            beside = top.indent == column and not (is_item and isinstance(top.step, str))
            if top.indent < column or (top.indent == column and not beside):
                return
            self._open.pop().end = index

    def _add(self, step: Step, indent: int, start: int, end: int) -> Entry:
        entry = Entry(step, indent, start, end, end, end, self._open[-1])
        self._open[-1].children.append(entry)
        self._open.append(entry)
        return entry

    def _scalar(self, line: str, start: int, column: int) -> None:
        """Reads a line without a key: the scalar of an item, a flow, or a word being typed."""
        top = self._open[-1]
        if isinstance(top.step, int) and top.value_end == top.value_start and not top.children:
            if column < len(line):
                self._value(top, start, line, column)
            return
        self._close(column, is_item=False, index=start)
        if self._open == [self._root] and line[column : column + 1] in "{[":
            self._value(self._root, start, line, column)
            return
        text = _COMMENT.sub("", line).rstrip()
        entry = self._add(text[column:], column, start + column, start + len(text))
        entry.is_stub = True

    def _value(self, entry: Entry, start: int, line: str, column: int) -> None:
        entry.value_start = entry.value_end = start + column
        rest = line[column:]
        if _BLOCK.match(rest):
            self._block(entry)
        elif rest[:1] in ("{", "["):
            self._flow(entry, start + column)
        elif rest and rest[0] != "#":
            self._plain(entry, start + column, rest)

    def _plain(self, entry: Entry, index: int, rest: str) -> None:
        if rest[0] in "\"'":
            closing = rest.find(rest[0], 1)
            written = rest[: closing + 1] if closing > 0 else rest
            entry.value = written.strip(rest[0])
        else:
            written = _COMMENT.sub("", rest).rstrip()
            entry.value = written
        entry.value_end = index + len(written)

    def _block(self, entry: Entry) -> None:
        """Reads the lines of a block scalar: those indented deeper, and blank ones."""
        entry.is_block = True
        entry.value_start = self._start_of(self._number)
        while self._number < len(self._document.starts):
            line = self._document.line(self._number)
            column = self._blanks(line, 0)
            if column < len(line) and column <= max(entry.indent, 0) - (entry.indent < 0):
                break
            self._number += 1
        entry.value_end = self._start_of(self._number)

    def _start_of(self, number: int) -> int:
        starts = self._document.starts
        return starts[number] if number < len(starts) else len(self._text)

    def _flow(self, entry: Entry, index: int) -> None:
        """Reads `{...}` or `[...]`, which may be open at the end of the text."""
        entry.is_flow = True
        end = find_end(self._text, index, entry.indent)
        entry.value_end = end
        read_flow(self._text, index, end, entry)
        while self._number < len(self._document.starts) and self._start_of(self._number) < end:
            self._number += 1
