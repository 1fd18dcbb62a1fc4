"""Warm-up: a query before the first one of the user, for which Spark loads its classes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import app
from penstock.plan.rewrite import isolate_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCRIPT = """\
CREATE TABLE counters WITH (connector = 'impulse', message_count = 1);
CREATE TABLE nowhere WITH (connector = 'blackhole');
INSERT INTO nowhere
SELECT upper(CAST(counter AS TEXT)) AS name, tumble(INTERVAL '1 minute'), count(*), sum(counter)
FROM counters WHERE counter >= 0 GROUP BY 1, 2
"""
"""The parts that most queries have: a source in Python, a filter, a window, aggregates."""
_POLL_SECONDS = 0.1


@contextmanager
def warm_up(spark: Future[SparkSession], directory: Path) -> Iterator[None]:
    """Runs a query in the background once the session has started. Stops it when the block ends.

    `directory` is for the state of the query. A query of the user finds the errors of the session.
    """
    ending = threading.Event()
    thread = threading.Thread(
        target=_run, args=(spark, directory, ending), name="penstock-warm-up", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _run(spark: Future[SparkSession], directory: Path, ending: threading.Event) -> None:
    if spark.exception() is not None or ending.is_set():
        return
    partial, _ = app.script_plan(_SCRIPT)
    assert partial is not None
    plan = isolate_state(partial.plan, directory / "warm-up")
    handle = app.start(plan, spark=spark.result().newSession())
    while handle.running:
        if ending.is_set():
            handle.stop(immediately=True)
        time.sleep(_POLL_SECONDS)
