"""Parts of messages: nearest names, plurals, shortened and printable texts, positions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

_SHORTEST_PREFIX = 4
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Returns the candidate nearest to `name`, or None if none is a likely misspelling.

    Case and separators are ignored. A candidate is near if one edit for each three characters, at
    most three, makes it equal, or if it is the only one that begins with `name` or that `name`
    begins with. An edit inserts, removes or replaces a character, or swaps two neighbours.
    """
    folded = {candidate: _fold(candidate) for candidate in candidates}
    key = _fold(name)
    near = [
        (distance, candidate)
        for candidate, text in folded.items()
        if (distance := _distance(key, text)) is not None
    ]
    if near:
        return min(near, key=lambda pair: pair[0])[1]
    extended = [
        candidate
        for candidate, text in folded.items()
        if min(len(key), len(text)) >= _SHORTEST_PREFIX
        and (text.startswith(key) or key.startswith(text))
    ]
    return extended[0] if len(extended) == 1 else None


def nearest_file(name: str, files: Iterable[str]) -> str | None:
    """Returns the file name nearest to `name`, or None.

    The names without suffixes are near, and equal if the suffixes differ.
    """
    path = PurePath(name)
    stems: dict[str, str] = {}
    for file in files:
        other = PurePath(file)
        if other.suffix == path.suffix or other.stem == path.stem:
            stems.setdefault(other.stem, file)
    stem = nearest(path.stem, stems)
    return stems[stem] if stem is not None else None


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _distance(first: str, second: str) -> int | None:
    """Returns the number of edits between two texts, or None if the texts are not near."""
    limit = min(max(len(first), len(second)) // 3, 3)
    if first == second:
        return 0
    if abs(len(first) - len(second)) > limit:
        return None
    counts = Counter(first), Counter(second)
    if max((counts[0] - counts[1]).total(), (counts[1] - counts[0]).total()) > limit:
        return None
    distance = _count_edits(first, second)
    return distance if distance <= limit else None


def _count_edits(first: Sequence[str], second: Sequence[str]) -> int:
    """Returns the number of edits: insertion, removal, replacement, swap of two neighbours."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        above, before, row = before, row, [i]
        for j, right in enumerate(second, 1):
            edits = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == second[j - 2] and first[i - 2] == right:
                edits = min(edits, above[j - 2] + 1)
            row.append(edits)
    return row[-1]


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Returns a hint with the nearest candidate, or with up to 40 candidates."""
    known = sorted(set(candidates))
    close = nearest(name, known)
    if close:
        return f'did you mean "{close}"?'
    if known and len(known) <= 40:
        return f"known: {', '.join(known)}"
    return None


def did_you_mean_one_of(names: Sequence[str]) -> str | None:
    """Returns a hint with all of the names; None without any."""
    quoted = [f'"{name}"' for name in names]
    return f"did you mean {', or '.join(quoted)}?" if quoted else None


def plural(count: int, noun: str, many: str | None = None) -> str:
    """Returns a count and its noun: `1 row`, `2 rows`, `1,234 rows`."""
    word = noun if count == 1 else (many or noun + "s")
    return f"{count:,} {word}"


def shorten(text: str, limit: int = 200) -> str:
    """Returns at most `limit` characters of a text, and the length of a longer text."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text):,} characters)"


def printable(text: str) -> str:
    """Returns a text with escapes such as `\\u001b` in place of control characters.

    A terminal interprets control characters, among them those that change the direction of a text.
    Data must not move its cursor, set its title or hide a part of a line. Line breaks and tabs
    remain. A JSON document remains the same document.
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def line_and_column(text: str, index: int) -> tuple[int, int]:
    """Returns the line and column, both from 1, of a character of `text`."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
