"""What every verb prints with: JSON for programs, aligned text for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import to_json

from penstock.core.errors import PenstockError, report
from penstock.sdk.kit.texttable import text_table


def print_json(value: Any) -> None:
    """One JSON document; bytes as base64, times as ISO-8601, dataclasses as objects."""
    text = to_json(value, indent=2, bytes_mode="base64", inf_nan_mode="strings")
    print(text.decode())


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "", wrap: bool = False
) -> None:
    """A table whose column names may be empty."""
    for line in text_table([(name, False) for name in header], rows, wrap=wrap):
        print(f"{indent}{line}")


def print_warnings(warnings: Iterable[PenstockError]) -> None:
    """Warnings, on standard error."""
    for warning in warnings:
        print(report(warning).replace("error[", "warning[", 1) + "\n", file=sys.stderr)
