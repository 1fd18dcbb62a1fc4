"""Forks of a process with objects that have finalizers."""

from __future__ import annotations

import gc
import os
import weakref

import pytest

from penstock.sdk.forked import iterate_forked


class Cycle:
    """An object that only the collector of garbage frees."""

    def __init__(self) -> None:
        self.own = self


def collected_here() -> int:
    """Makes the collector run, if it is enabled."""
    return len([[] for _ in range(200_000)])


@pytest.mark.slow
def test_a_fork_runs_no_finalizers_of_its_parent() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    gc.collect()
    weakref.finalize(Cycle(), lambda: os.write(writing, b"%d " % os.getpid()))
    assert list(iterate_forked(lambda: iter([collected_here()]))) == [200_000]
    written = b""
    try:
        written = os.read(reading, 100)
    except BlockingIOError:
        pass
    finally:
        gc.collect()
        os.close(reading), os.close(writing)
    assert {*written.split()} <= {b"%d" % os.getpid()}
