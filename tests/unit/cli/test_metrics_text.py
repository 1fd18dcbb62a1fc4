"""Metrics as text: elapsed times, lags and watermarks."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.cli.metrics_table import format_elapsed, format_lag, format_watermark
from penstock.cli.summary import reported_errors
from penstock.core.errors import OutputClosed, Transient
from penstock.runtime.outcome import Outcome


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 0 s"),
        (200, "3 min 20 s"), (3599.6, "1 h 0 min"), (18_720, "5 h 12 min"), (183_600, "2 d 3 h"),
    ],
)  # fmt: skip
def test_elapsed_times(seconds: float, text: str) -> None:
    assert format_elapsed(seconds) == text


@pytest.mark.parametrize(
    ("lag", "unit", "text"),
    [(None, "files", ""), (0, "files", "0 files"), (1, "files", "1 file"),
     (1_500, "records", "1,500 records"), (1_500, "bytes", "1.5 KB")],
)  # fmt: skip
def test_lags(lag: int | None, unit: str, text: str) -> None:
    flow: Any = {"lag": lag, "lag_unit": unit}
    assert format_lag(flow) == text


def test_the_lowest_watermark_is_shown() -> None:
    marks = ["2013-01-05T12:00:30.000Z", "1970-01-01T00:00:00.000Z", "2013-01-04T23:59:59.000Z"]
    assert format_watermark(marks) == ["watermark 2013-01-04 23:59"]
    assert format_watermark(marks[1:2]) == format_watermark([]) == []


def test_the_end_of_the_reader_of_the_output_is_not_reported() -> None:
    down = Transient("could not reach the server")
    outcome = Outcome("failed", {"shown": OutputClosed("the output is closed"), "copy": down})
    assert reported_errors(outcome) == {"copy": down}
