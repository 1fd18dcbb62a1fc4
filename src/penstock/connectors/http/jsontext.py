"""Parts of a JSON text, byte for byte as they stand in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator

_SPACE = " \t\n\r"
_scan = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str).raw_decode


def _valid(pointer: str) -> str:
    if pointer and not pointer.startswith("/"):
        raise ValueError("expected a JSON pointer, such as /data/items")
    return pointer


Pointer = Annotated[str, AfterValidator(_valid)]
"""A place in a JSON text (RFC 6901), such as `/data/items`."""


def elements(text: str) -> list[str]:
    """The elements of an array. Raises ValueError if the text is none."""
    return [text[start:end] for start, end in _values(text, "[", "]")]


def part(text: str, pointer: str) -> str | None:
    """What is at that place; None if there is no such place. Raises ValueError if it is no JSON."""
    for step in pointer.split("/")[1:]:
        inner = _child(text, step.replace("~1", "/").replace("~0", "~"))
        if inner is None:
            return None
        text = inner
    return text


def _child(text: str, step: str) -> str | None:
    begin = _after_space(text, 0)
    if text.startswith("[", begin):
        inner = elements(text)
        return inner[int(step)] if step.isdecimal() and int(step) < len(inner) else None
    if not text.startswith("{", begin):
        _scan(text, begin)
        return None
    values = iter(_values(text, "{", "}"))
    for (key, key_end), (start, end) in zip(values, values, strict=True):
        if json.loads(text[key:key_end]) == step:
            return text[start:end]
    return None


def _values(text: str, first: str, last: str) -> Iterator[tuple[int, int]]:
    """Where the values of an array begin and end; of an object, each key and its value."""
    try:
        yield from _scanned(text, first, last)
    except IndexError:
        raise ValueError("it ends too early") from None


def _scanned(text: str, first: str, last: str) -> Iterator[tuple[int, int]]:
    at = _expect(text, 0, first)
    while text[at] != last:
        if first == "{":
            _, end = _scan(text, at)
            yield at, end
            at = _expect(text, end, ":")
        _, end = _scan(text, at)
        yield at, end
        at = _after_space(text, end)
        if text[at] != last:
            at = _expect(text, at, ",")
            if text[at] == last:
                raise ValueError(f"expected a value at character {at}")
    if _after_space(text, at + 1) != len(text):
        raise ValueError("there is more after the end")


def _expect(text: str, at: int, mark: str) -> int:
    """The place after the mark, and after the space that follows."""
    at = _after_space(text, at)
    if text[at] != mark:
        raise ValueError(f'expected "{mark}" at character {at}')
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
