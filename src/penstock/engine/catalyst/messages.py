"""Texts of Spark's messages, without Spark's internals."""

from __future__ import annotations

import re

_COLUMN_ID = re.compile(r"(?<=[\w`)\]])#\d+L?\b")


def without_column_ids(text: str) -> str:
    """Returns a message with `AMOUNT` in place of `AMOUNT#58`, as Spark numbers columns."""
    return _COLUMN_ID.sub("", text)
