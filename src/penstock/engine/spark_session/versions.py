"""Versions that all machines of a cluster must share."""

from __future__ import annotations

import platform
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.core.errors import UserError

PACKAGES_HINT = "Install the same packages on all machines of the cluster."


def versions() -> dict[str, str]:
    """Returns the versions of this process that all machines of a cluster must share."""
    import pyspark

    from penstock.core.version import __version__

    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "Penstock": __version__, "PySpark": pyspark.__version__,
        "Python": python, "PyArrow": pa.__version__,
    }  # fmt: skip


def different_versions(driver: Mapping[str, Any]) -> str:
    """Returns the versions that differ from those of the driver, with both hosts, or nothing."""
    here, there = versions(), driver["versions"]
    names = [name for name in there if here[name] != there[name]]
    if not names:
        return ""
    own, others = (", ".join(f"{name} {v[name]}" for name in names) for v in (here, there))
    return f"executor on {socket.gethostname()}: {own}; driver on {driver['host']}: {others}"


def other_versions(differences: Sequence[str]) -> UserError:
    """Returns the error of executors with other versions."""
    return UserError(
        "the executors have other versions than the driver",
        code="other-versions", detail="\n".join(differences), hint=PACKAGES_HINT,
    )  # fmt: skip
