"""Checks of transforms that decode or encode payloads."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.sdk.transform import PayloadTransform


def check_format(transform: PayloadTransform[Any]) -> None:
    """Raises OptionError for a format of changes, whose rows have operations."""
    if transform.format is not None and transform.format.carries_operations:
        raise OptionError.of(
            "format",
            message="a format of changes is for sources and sinks",
            code="wrong-format",
            hint="Set the format on the source or on the sink.",
        )


def is_payload(type_: pa.DataType) -> bool:
    """Returns whether values of a type are payloads: texts or bytes."""
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))
