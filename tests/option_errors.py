"""Comparison of the errors of invalid options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

Case = tuple[dict[str, Any], str, str]
"""Invalid options, the path of the option that the error is about, and a part of the message."""


def assert_option_error(model: type[BaseModel], options: Mapping[str, Any], case: Case) -> None:
    """Asserts that the options of a case, added to `options`, have the error of the case.

    The error is at the path of the option, or at a parent of it with a message that names it.
    """
    added, option, message = case
    with pytest.raises(ValidationError) as caught:
        model.model_validate({**options, **added})
    found = list(_errors(caught.value))
    assert any(
        message in text and (path == option or (option.startswith(path) and option in text))
        for path, text in found
    ), f"expected {option}: {message}; found {found}"


def _errors(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yields the path of the option and the message of each error, without members of unions."""
    for each in error.errors():
        names = [str(part) for part in each["loc"] if re.fullmatch("[a-z0-9_]+", str(part))]
        yield ".".join(names), each["msg"]
