"""Differences between the dialects that are built on DataFusion."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The meaning of forms that dialects of DataFusion read differently."""

    replaces_all: bool = False
    """Whether `regexp_replace` without flags replaces all matches, with a replacement as it is.
    Otherwise it replaces the first match, and `$1` is a group."""


PLAIN = Settings()
"""DataFusion itself, as in Arroyo."""
