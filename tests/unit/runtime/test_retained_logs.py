"""Warnings of logs that databases keep for sources."""

from __future__ import annotations

import io

from penstock.core import log
from penstock.runtime.receiving.retained_logs import RetainedLogs

GIB = 1 << 30


def test_a_log_that_grows_is_a_warning_at_each_doubling() -> None:
    output = io.StringIO()
    logs = RetainedLogs(log.make(file=output))
    sizes = (GIB - 1, GIB, 2 * GIB - 1, 2 * GIB, 3 * GIB, 5, GIB)
    counts = []
    for size in sizes:
        logs.observe("orders", size)
        counts.append(output.getvalue().count("large log"))
    assert counts == [0, 1, 1, 2, 2, 2, 3]
    logs.observe("customers", GIB)
    assert "source=customers" in output.getvalue().splitlines()[-1]
