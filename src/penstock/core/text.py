"""Words for messages: the nearest right name, lists, plurals, sizes and rates."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, or None where none is close."""
    known = list(candidates)
    folded = {candidate.lower().replace("-", "_"): candidate for candidate in known}
    key = name.lower().replace("-", "_")
    if key in folded:
        return folded[key]
    close = difflib.get_close_matches(key, folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A hint that names the nearest candidate, or lists them where there are few."""
    known = sorted(set(candidates))
    close = nearest(name, known)
    if close:
        return f'did you mean "{close}"?'
    if known and len(known) <= 30:
        return f"known: {', '.join(known)}"
    return None


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 row`, `2 rows`, `1,234 rows`."""
    word = noun if count == 1 else (many or noun + "s")
    return f"{count:,} {word}"


def shorten(text: str, most: int = 200) -> str:
    """`text` cut to `most` characters, saying how much is left out."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def line_and_column(text: str, index: int) -> tuple[int, int]:
    """The line and column, both from 1, of a character of `text`."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)
