"""Properties that are passed to client libraries."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from penstock.core.paths import check_settings
from penstock.core.secret import Secret


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


Property = Annotated[
    Secret,
    BeforeValidator(_as_text),
    WithJsonSchema({"anyOf": [{"type": kind} for kind in ("string", "number", "boolean")]}),
]
"""The value of a property of a client library, which may be a secret."""
Properties = Annotated[dict[str, Property], AfterValidator(check_settings)]
"""Properties of a client library by name."""
