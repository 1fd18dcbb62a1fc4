"""The base class of a component's options."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from penstock.core.paths import ConfigStr, UserPath

__all__ = ["Config", "ConfigStr", "UserPath"]


class Config(BaseModel):
    """The base class of a component's options. Immutable; unknown options are errors.

    The docstring below a field is its text in the docs, in the JSON Schema and in
    `penstock describe`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False
    )
