"""Signals that come before a run can finish a batch."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from penstock.cli.run import ExitOnSignal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_not_forgotten_when_its_exception_is_dropped(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    leaving = ExitOnSignal()
    with leaving:
        leaving.raise_pending()
        with suppress(SystemExit):
            signal.raise_signal(number)
        with pytest.raises(SystemExit) as raised:
            leaving.raise_pending()
    assert raised.value.code == 128 + number
    assert signal.getsignal(number) is before
