"""Syntax of subjects, keys and names, and overlap of subject filters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

_NAME = re.compile(r"[^\s.*>/\\]+")
_KEY = re.compile(r"[-/_=.a-zA-Z0-9]+")
_MAX_SUBJECT_BYTES = 3900
"""The longest subject within the control line of a server, which has 4,096 bytes by default.

A server closes the connection after a longer line.
"""


def subject_error(subject: str) -> str | None:
    """Returns the error of a subject to publish to; None for a valid subject."""
    if re.search(r"[\s\x00*>]", subject):
        return "expected a subject without spaces and the wildcards * and >"
    if not all(subject.split(".")):
        return "expected non-empty tokens between dots, such as orders.new"
    return length_error(subject)


def length_error(subject: str) -> str | None:
    """Returns the error of a subject that is too long; None for others."""
    size = len(subject.encode())
    if size <= _MAX_SUBJECT_BYTES:
        return None
    return f"expected a subject of at most {_MAX_SUBJECT_BYTES:,} bytes, found {size:,}"


def filter_error(subject: str) -> str | None:
    """Returns the error of a subject filter; None for a valid filter."""
    tokens = subject.split(".")
    if any(">" in token for token in tokens[:-1]) or (">" in tokens[-1] and tokens[-1] != ">"):
        return "expected > only as the entire last token: orders.>"
    if any("*" in token and token != "*" for token in tokens):
        return "expected * only as an entire token: orders.*.new"
    return subject_error(subject.replace("*", "x").replace(">", "x"))


def key_error(key: str) -> str | None:
    """Returns the error of a key of a bucket; None for a valid key."""
    if not _KEY.fullmatch(key) or key[0] == "." or key[-1] == ".":
        return "expected a key of letters, digits and - / _ = . without a dot at either end"
    return None


def header_error(name: str, value: str) -> str | None:
    """Returns the error of a header's value; None for a valid value."""
    if "\r" in value or "\n" in value:
        return f'expected a header "{name}" without line breaks'
    return None


def check_name(name: str | None) -> str | None:
    """Returns the name of a stream, bucket or consumer. Raises ValueError if it is invalid."""
    if name is not None and not _NAME.fullmatch(name):
        raise ValueError("expected a name without spaces and . * > / \\")
    return name


def check_filters(subjects: str | list[str] | None) -> str | list[str] | None:
    """Returns subject filters. Raises ValueError if they are invalid or overlap."""
    filters = as_list(subjects)
    if subjects is not None and not filters:
        raise ValueError("expected at least one subject")
    for subject in filters:
        if (error := filter_error(subject)) is not None:
            raise ValueError(f'"{subject}": {error}')
    for first, second in combinations(filters, 2):
        if overlap(first, second):
            raise ValueError(f'"{first}" and "{second}" overlap')
    return subjects


def as_list(option: str | list[str] | None) -> list[str]:
    """Returns an option that is one text or several as a list."""
    return [option] if isinstance(option, str) else list(option or ())


def overlap(first: str, second: str) -> bool:
    """Returns whether a subject exists that both filters match."""
    return _overlap(first.split("."), second.split("."))


def _overlap(first: Sequence[str], second: Sequence[str]) -> bool:
    if not first or not second:
        return not first and not second
    if ">" in (first[0], second[0]):
        return True
    same = first[0] == second[0] or "*" in (first[0], second[0])
    return same and _overlap(first[1:], second[1:])
