"""Declarative stream processing on Apache Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.core.version import __version__

if TYPE_CHECKING:
    from penstock.app import RunOptions, run
    from penstock.decorators import stateful, udaf, udf, udtf

__all__ = ["RunOptions", "__version__", "run", "stateful", "udaf", "udf", "udtf"]


def __getattr__(name: str) -> Any:
    """Imports public names on first use, so that `import penstock` is fast."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("stateful", "udaf", "udf", "udtf"):
        from penstock import decorators

        return getattr(decorators, name)
    from penstock import app

    return getattr(app, name)
