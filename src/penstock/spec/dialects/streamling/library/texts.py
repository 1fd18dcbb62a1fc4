"""Functions of texts, with the meaning of Flink: a null for arguments without a result."""

from __future__ import annotations


def split(text: str | None, delimiter: str | None) -> list[str] | None:
    """Returns the parts of a text; its characters for an empty delimiter."""
    if text is None or delimiter is None:
        return None
    return text.split(delimiter) if delimiter else list(text)


def split_index(text: str | None, delimiter: str | None, index: int | None) -> str | None:
    """Returns a part of a text by its position from 0. An empty delimiter does not divide it."""
    if text is None or delimiter is None or index is None:
        return None
    parts = text.split(delimiter) if delimiter else [text]
    return parts[index] if 0 <= index < len(parts) else None


def instr(
    text: str | None, part: str | None, start: int | None, occurrence: int | None
) -> int | None:
    """Returns the position from 1 of an occurrence of a text; 0 without it.

    A negative start is a position from the end, from which the text is searched backwards.
    """
    if text is None or part is None or start is None or occurrence is None:
        return None
    if occurrence < 1:
        raise ValueError(f"the occurrence must be at least 1: {occurrence}")
    if start == 0:
        return 0
    step = 1 if start > 0 else -1
    index = start - 1 if start > 0 else len(text) + start
    while 0 <= index < len(text) + (not part):
        if text.startswith(part, index):
            occurrence -= 1
            if occurrence == 0:
                return index + 1
        index += step
    return 0
