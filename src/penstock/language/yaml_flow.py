"""Flow values of YAML, `{a: 1, b: [c, d]}`, in a text that may be incomplete."""

from __future__ import annotations

import re

from penstock.language.yaml_entry import Entry

_PART = re.compile(
    r"""[{}\[\],]|"(?:[^"\\]|\\.)*"?|'[^']*'?|(?:[^\s,{}\[\]"'#]|(?<=\S)#)+|\s+|#[^\n]*|.""",
    re.DOTALL,
)
MAX_DEPTH = 50
"""Maps and lists that are nested deeper have no entries."""
_NEXT_KEY = re.compile(r"\n( *)[^\s#{}\[\],][^\n{}\[\],]*:(?:[ \t]|\n|$)")


def find_end(text: str, start: int, indent: int) -> int:
    """Returns the index after the bracket that closes the one at `start`.

    An open bracket ends before the next line that has a key and is not indented deeper than
    `indent`, or else at the end of the text.
    """
    following = (each for each in _NEXT_KEY.finditer(text, start) if len(each[1]) <= indent)
    first = next(following, None)
    limit = first.start() if first else len(text)
    depth = 0
    for match in _PART.finditer(text, start, limit):
        if match[0] in ("{", "["):
            depth += 1
        elif match[0] in ("}", "]"):
            depth -= 1
            if depth == 0:
                return match.end()
    return limit


def read_flow(text: str, start: int, end: int, entry: Entry) -> None:
    """Adds the entries of a flow value to the entry that has the value."""
    _FlowReader(text, start, end, entry).read()


class _FlowReader:
    def __init__(self, text: str, start: int, end: int, entry: Entry) -> None:
        self._text, self._end = text, end
        self._open = [entry]
        self._start = start
        self._words: list[tuple[int, int]] = []
        self._current: Entry | None = None

    def read(self) -> None:
        for match in _PART.finditer(self._text, self._start, self._end):
            part, index = match[0], match.start()
            if part in ("{", "["):
                self._begin(index)
            elif part in ("}", "]", ","):
                self._finish()
                if part != "," and len(self._open) > 1:
                    closed = self._open.pop()
                    closed.value_end = closed.end = match.end()
            elif not part.isspace() and not part.startswith("#"):
                self._word(index, match.end())
        self._finish()
        for entry in self._open[1:]:
            entry.value_end = entry.end = self._end

    def _begin(self, index: int) -> None:
        if index == self._start or len(self._open) > MAX_DEPTH:
            return
        holder = self._current
        self._current, self._words = None, []
        if holder is None:
            holder = self._add(self._count(), index, index)
        holder.is_flow, holder.value_start = True, index
        self._open.append(holder)

    def _count(self) -> int:
        return sum(isinstance(each.step, int) for each in self._open[-1].children)

    def _add(self, step: str | int, start: int, end: int) -> Entry:
        entry = Entry(step, self._open[0].indent, start, end, end, end, self._open[-1])
        self._open[-1].children.append(entry)
        return entry

    def _word(self, start: int, end: int) -> None:
        word = self._text[start:end]
        if self._current is None and word.endswith(":") and self._in_map():
            first = self._words[0][0] if self._words else start
            key = self._text[first : end - 1].strip().strip("\"'")
            self._current = self._add(key, first, end - 1)
            self._current.value_start = self._current.value_end = end
            self._words = []
        elif word == ":" and self._words and self._in_map():
            self._word(self._words.pop(0)[0], end)
        else:
            self._words.append((start, end))

    def _in_map(self) -> bool:
        opening = self._open[-1]
        index = self._start if len(self._open) == 1 else opening.value_start
        return self._text[index] == "{"

    def _finish(self) -> None:
        """Ends a value, an item or a word without a colon."""
        if self._words:
            start, end = self._words[0][0], self._words[-1][1]
            text = self._text[start:end]
            entry = self._current
            if entry is None:
                entry = self._add(text if self._in_map() else self._count(), start, end)
                entry.is_stub = self._in_map()
            entry.value_start, entry.value_end = start, end
            entry.value = text.strip("\"'")
            entry.end = end
        self._current, self._words = None, []
