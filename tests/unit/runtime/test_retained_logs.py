"""Warnings of logs that databases keep for sources."""

from __future__ import annotations

import io

from penstock.core import log
from penstock.runtime.receiving.retained_logs import RetainedLogs
from penstock.sdk.retained_log import RetainedLog

GIB = 1 << 30


def test_a_log_that_grows_is_a_warning_at_each_doubling() -> None:
    output = io.StringIO()
    logs = RetainedLogs(log.make(file=output))
    sizes = (GIB - 1, GIB, 2 * GIB - 1, 2 * GIB, 3 * GIB, 5, GIB)
    counts = []
    for size in sizes:
        logs.observe("orders", RetainedLog(size))
        counts.append(output.getvalue().count("large log"))
    assert counts == [0, 1, 1, 2, 2, 2, 3]
    logs.observe("customers", RetainedLog(GIB))
    assert "source=customers" in output.getvalue().splitlines()[-1]


def test_a_log_that_ends_soon_is_one_warning() -> None:
    """It counts from ten minutes on: a new server has a short log."""
    output = io.StringIO()
    logs = RetainedLogs(log.make(file=output))
    counts = []
    for seconds, share in ((599, 1.0), (900, 0.7), (900, 0.75), (950, 0.9), (90, 0.1), (900, 0.8)):
        logs.observe("orders", RetainedLog(seconds=seconds, share=share))
        counts.append(output.getvalue().count("soon removes"))
    assert counts == [0, 0, 1, 1, 1, 2]
    logs.observe("orders", RetainedLog())
    assert output.getvalue().count("behind='900 s'") == 2 == output.getvalue().count("warning")
