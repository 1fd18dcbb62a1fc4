"""Drafts: texts of pipelines that are not applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Draft:
    """A text in place of that of a file.

    `variables` are those of the environment with the connections that its author may use.
    """

    file: Path
    text: str
    variables: Mapping[str, str]
