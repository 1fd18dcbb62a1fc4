"""Errors of options that a server does not permit, as validators of options raise them."""

from __future__ import annotations

from pydantic_core import PydanticCustomError

NOT_PERMITTED = "not_permitted"
"""The kind of the errors."""


def not_permitted(message: str, code: str, hint: str) -> PydanticCustomError:
    """Returns the error of an option, which keeps its code and its hint."""
    context = {"text": message, "code": code, "hint": hint}
    return PydanticCustomError(NOT_PERMITTED, "{text}", context)
