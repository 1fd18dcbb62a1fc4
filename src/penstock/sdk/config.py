"""Options of a component: a frozen, closed model whose field docstrings are the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Config(BaseModel):
    """Base of every component's options.

    The docstring below a field is its text in the docs, in the JSON Schema and in
    `penstock describe`. An unknown option is a mistake.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False
    )


class Text(str):
    """A string of a pipeline file that knows the directory of its file."""

    base: Path | None

    def __new__(cls, value: str, base: Path | None = None) -> Text:
        text = super().__new__(cls, value)
        text.base = base
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return Text, (str(self), self.base)


def _resolve(value: object) -> object:
    if not isinstance(value, str) or "://" in value or value.startswith(("/", "~")):
        return str(Path(value).expanduser()) if str(value).startswith("~") else value
    base = getattr(value, "base", None) or Path.cwd()
    return str(base / value)


UserPath = Annotated[str, BeforeValidator(_resolve)]
"""A path or URL; a relative path is relative to the file that says it."""
