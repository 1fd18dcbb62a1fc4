"""Statuses of answers, as options list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator

_CLASSES = {f"{first}xx": range(first * 100, first * 100 + 100) for first in range(1, 6)}


def _status(given: int | str) -> int | str:
    if isinstance(given, str) and given not in _CLASSES:
        raise ValueError("expected a status such as 200, or a class of them such as 2xx")
    return given


Status = Annotated[int | str, AfterValidator(_status)]


def listed(status: int, statuses: Sequence[int | str]) -> bool:
    """Whether a status is one of those listed, or of one of their classes."""
    return any(
        status == each if isinstance(each, int) else status in _CLASSES[each] for each in statuses
    )
