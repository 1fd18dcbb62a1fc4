"""Options of a component: a frozen, closed model whose field docstrings are the documentation."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from penstock.core.paths import Text, UserPath

__all__ = ["Config", "Text", "UserPath"]


class Config(BaseModel):
    """Base of every component's options.

    The docstring below a field is its text in the docs, in the JSON Schema and in
    `penstock describe`. An unknown option is a mistake.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False
    )
