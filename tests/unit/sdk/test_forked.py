"""Forks of a process with objects that have finalizers."""

from __future__ import annotations

import gc
import os
import weakref

from py4j import java_gateway

from penstock.sdk.forked import iterate_forked


class Cycle:
    """An object that only the collector of garbage frees."""

    def __init__(self) -> None:
        self.own = self


def collected_here() -> int:
    """Makes the collector run, if it is enabled."""
    return len([[] for _ in range(200_000)])


def test_a_fork_runs_no_finalizers_of_its_parent() -> None:
    """The finalizer of a Java object would write to the connection of the parent."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    gc.collect()
    weakref.finalize(Cycle(), os.write, writing, b"x")
    assert list(iterate_forked(lambda: iter([collected_here()]))) == [200_000]
    written = b""
    try:
        written = os.read(reading, 1)
    except BlockingIOError:
        pass
    finally:
        gc.collect()
        os.close(reading), os.close(writing)
    assert written == b""


def test_java_objects_of_a_fork_are_not_freed() -> None:
    collect = java_gateway._garbage_collect_object
    (is_replaced,) = iterate_forked(
        lambda: iter([java_gateway._garbage_collect_object is not collect])
    )
    assert is_replaced and java_gateway._garbage_collect_object is collect
