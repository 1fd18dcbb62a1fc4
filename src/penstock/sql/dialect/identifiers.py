"""Names of columns in edited text."""

from __future__ import annotations

import re

from penstock.core.names import quote_name

HIDDEN = "_event_time"
"""The column of an event time that a query does not select."""
_PLAIN = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)


def quoted(name: str) -> str:
    """Returns a name as it is written in Spark SQL."""
    return name if _PLAIN.match(name) else quote_name(name)
