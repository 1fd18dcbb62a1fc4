"""Documentation by words: components, options, functions of SQL, error codes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from penstock.core.error_codes import ERROR_CODES
from penstock.core.text import nearest
from penstock.language.functions import function_help
from penstock.language.hover import function_text
from penstock.language.option_completion import type_text
from penstock.sdk.describe import describe_all

MAX_ENTRIES = 10


def search(query: str) -> dict[str, str]:
    """Returns the entries that fit a query best, by title: an exact name first.

    Without any, the entry of the nearest name.
    """
    words = query.lower().split()
    scores = {title: _score(title, text, words) for title, text in _entries().items()}
    best = sorted((t for t, score in scores.items() if score), key=lambda t: -scores[t])
    if not best:
        names = {title.partition(" ")[2]: title for title in _entries()}
        close = nearest(query, names)
        best = [names[close]] if close else []
    return {title: _entries()[title] for title in best[:MAX_ENTRIES]}


def _score(title: str, text: str, words: list[str]) -> int:
    """Returns the number of words that an entry has; words of its name count more."""
    name, body = title.lower(), text.lower()
    exact = name.partition(" ")[2] == " ".join(words)
    return 20 * exact + sum(5 * (word in name) + (word in body) for word in words)


@cache
def _entries() -> dict[str, str]:
    return dict(_all())


def _all() -> Iterator[tuple[str, str]]:
    for kind, found in describe_all().items():
        for each in found:
            options = "\n".join(f"* `{o.name}` ({o.type}): {o.text}" for o in each.options)
            yield f"{kind} {each.type}", f"{type_text(kind, each.type)}\n\n{options}"
    yield from ((f"error {code}", text) for code, text in ERROR_CODES.items())
    yield from ((f"function {name}", function_text(f)) for name, f in function_help().items())
