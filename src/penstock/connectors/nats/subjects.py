"""What may stand as a subject, a stream and a key, and which subjects a filter matches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

_NAME = re.compile(r"[^\s.*>/\\]+")
_KEY = re.compile(r"[-/_=.a-zA-Z0-9]+")


def name_mistake(subject: str) -> str | None:
    """Why nothing can be published to it; None if it can."""
    if re.search(r"[\s\x00*>]", subject):
        return "a subject to publish to has no space, no * and no >"
    if not all(subject.split(".")):
        return "a subject is words between dots, as in orders.new"
    return None


def filter_mistake(subject: str) -> str | None:
    """Why nobody can subscribe to it; None if one can."""
    words = subject.split(".")
    if any(">" in word for word in words[:-1]) or (">" in words[-1] and words[-1] != ">"):
        return "> is the last word, alone: orders.>"
    if any("*" in word and word != "*" for word in words):
        return "* is a word alone: orders.*.new"
    return name_mistake(subject.replace("*", "x").replace(">", "x"))


def key_mistake(key: str) -> str | None:
    """Why a bucket has no such key; None if it may."""
    if not _KEY.fullmatch(key) or key[0] == "." or key[-1] == ".":
        return "a key has letters, digits and - / _ = . and no dot at its ends"
    return None


def need_name(name: str | None) -> str | None:
    """The name of a stream, bucket or consumer. Raises ValueError if it cannot be one."""
    if name is not None and not _NAME.fullmatch(name):
        raise ValueError("a name has no space, and none of . * > / \\")
    return name


def need_filters(subjects: str | list[str] | None) -> str | list[str] | None:
    """Subjects to subscribe to. Raises ValueError if one is wrong, or two share messages."""
    found = listed(subjects)
    if subjects is not None and not found:
        raise ValueError("give at least one")
    for each in found:
        if (mistake := filter_mistake(each)) is not None:
            raise ValueError(f'"{each}": {mistake}')
    for one, other in combinations(found, 2):
        if overlap(one, other):
            raise ValueError(f'"{one}" and "{other}" match the same subjects')
    return subjects


def listed(subjects: str | list[str] | None) -> list[str]:
    """One or several as a list."""
    return [subjects] if isinstance(subjects, str) else list(subjects or ())


def overlap(one: str, other: str) -> bool:
    """Whether there is a subject that both match; a subject without wildcards matches itself."""
    return _overlap(one.split("."), other.split("."))


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    if not one or not other:
        return not one and not other
    if ">" in (one[0], other[0]):
        return True
    same = one[0] == other[0] or "*" in (one[0], other[0])
    return same and _overlap(one[1:], other[1:])
