"""The base class of a component's options."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from penstock.core.paths import ConfigStr, UserFile, UserPath

__all__ = ["Config", "ConfigStr", "RegularExpression", "UserFile", "UserPath"]


def _check_regular_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"invalid regular expression: {error}") from None
    return text


RegularExpression = Annotated[str, AfterValidator(_check_regular_expression)]
"""A regular expression of Python, compiled by the component that uses it."""


class Config(BaseModel):
    """The base class of a component's options. Immutable; unknown options are errors.

    The docstring below a field is its text in the docs, in the JSON Schema and in
    `penstock describe`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=False
    )

    uses_outer_auth: ClassVar[bool] = False
    """Whether these options have a `url` to which the `auth` of the options around them is sent."""
