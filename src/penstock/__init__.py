"""Declarative stream processing on Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app import RunOptions, run

__all__ = ["RunOptions", "__version__", "run"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Importing the package alone costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock import app

    return getattr(app, name)
