"""Whether the driver of a cluster serves files of the state to executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ENCRYPTED = (
    "spark.network.crypto.enabled", "spark.ssl.enabled", "spark.ssl.rpc.enabled",
    "spark.authenticate.enableSaslEncryption",
)  # fmt: skip
"""The settings that encrypt the connections of Spark."""


def serves_state(settings: Mapping[str, Any]) -> bool:
    """Returns whether the driver serves files of the state, with these settings of Spark.

    The connections of its server are not encrypted. It does not serve if those of Spark are.
    """
    return not any(str(settings.get(name, "")).lower() == "true" for name in _ENCRYPTED)
