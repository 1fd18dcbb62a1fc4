"""Patterns of paths with `*`, `?`, `[...]` and `**`."""

from __future__ import annotations

import re

MAGIC = re.compile(r"[*?\[]")
_NOT_HIDDEN = r"(?![._])"
_SPECIAL = re.compile(r"([\\\[&|~])")


def split_pattern(path: str) -> tuple[str, str | None]:
    """Splits a path before the first name with a wildcard. The pattern is None without one."""
    if not MAGIC.search(path):
        return path, None
    parts = path.split("/")
    first = next(index for index, part in enumerate(parts) if MAGIC.search(part))
    return "/".join(parts[:first]) or "/", "/".join(parts[first:])


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Returns a pattern as a regular expression over paths with slashes.

    Raises ValueError for an invalid set of characters.
    """
    parts = pattern.split("/")
    regexes = []
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            regexes.append(f"(?:{_NOT_HIDDEN}[^/]+/)*" + (f"{_NOT_HIDDEN}[^/]+" if last else ""))
        else:
            regexes.append(_name(part) + ("" if last else "/"))
    return re.compile("".join(regexes) + r"\Z")


def _name(part: str) -> str:
    regex = _NOT_HIDDEN if MAGIC.match(part) else ""
    index = 0
    while index < len(part):
        character = part[index]
        closing = part.find("]", index + 2) if character == "[" else -1
        if character == "*":
            regex += "[^/]*"
        elif character == "?":
            regex += "[^/]"
        elif closing > 0:
            regex += _character_set(part[index + 1 : closing])
            index = closing
        else:
            regex += re.escape(character)
        index += 1
    return regex


def _character_set(body: str) -> str:
    """Returns the regular expression of `[body]`. Raises ValueError if it is invalid."""
    negated = body[0] in "!^"
    characters = _SPECIAL.sub(r"\\\1", body[1:] if negated else body)
    regex = f"[{'^' * negated}{characters}]"
    try:
        re.compile(regex)
    except re.error as error:
        raise ValueError(
            f'expected a set of characters such as "[a-z]", found "[{body}]" ({error.msg})'
        ) from None
    return regex
