"""Errors of Python in schemas of other systems, which the libraries do not check."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.core.errors import PenstockError, PlanError
from penstock.sdk.columns.conform import error_text


@contextmanager
def invalid_schema(name: str) -> Iterator[None]:
    """Raises PlanError in place of any other error. Usable as a decorator."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        message = f"not a valid {name}: {type(error).__name__}: {error_text(error)}"
        raise PlanError(message, code="invalid-schema") from error
