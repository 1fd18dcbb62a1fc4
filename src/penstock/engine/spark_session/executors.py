"""Preparation of executors: their first Python workers, their paths and their versions.

A thread runs one task in each slot while the driver plans the queries, so that the workers of the
first batch exist. Each task compares its machine with that of the driver.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from penstock.core.error_codec import encode_errors
from penstock.core.errors import UserError
from penstock.core.log import Log
from penstock.engine.spark_session.cluster import await_executors, registered_executors
from penstock.engine.spark_session.hadoop import plain_tasks, tuning_tasks
from penstock.engine.spark_session.shared_paths import SharedPath, describe
from penstock.engine.spark_session.versions import (
    PACKAGES_HINT,
    different_versions,
    other_versions,
    versions,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PROBE_SECONDS = 0.5
"""The duration of a task, so that no executor runs the task of another one."""
_NO_PACKAGES = re.compile(r"No module named \S+|.*PYTHON_VERSION_MISMATCH.*")
_UNTUNED = "executors log each task, or need more CPU for their files"
_PROBE = pa.schema([("result", pa.string())])


class _Result(NamedTuple):
    """The differences of an executor: its versions, and the paths that it lacks, by number.

    `failures` are those of `tuning_tasks`, with the host.
    """

    failures: str
    versions: str
    missing: Sequence[tuple[int, str]]


class Executors:
    """The executors of a cluster, which are prepared in a thread from now on."""

    def __init__(self, session: SparkSession, paths: Sequence[SharedPath], log: Log) -> None:
        self._session, self._paths, self._log = session, paths, log
        self._results: list[_Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-executors", daemon=True)
        self._thread.start()

    def await_ready(self) -> dict[SharedPath, list[str]]:
        """Returns the paths that executors do not share, with the reasons.

        Raises UserError for an executor with other versions, and Transient without executors.
        """
        self._thread.join()
        if self._error is not None:
            raise _without_packages(self._error) or self._error
        differences = {result.versions for result in self._results} - {""}
        if differences:
            raise other_versions(sorted(differences))
        missing: dict[SharedPath, set[str]] = {}
        for result in self._results:
            for number, reason in result.missing:
                missing.setdefault(self._paths[number], set()).add(reason)
        return {path: sorted(reasons) for path, reasons in missing.items()}

    def _run(self) -> None:
        try:
            self._results = self._probe()
        except BaseException as error:
            self._error = error

    def _probe(self) -> list[_Result]:
        session = self._session
        await_executors(session, self._log)
        slots = max(int(session.sparkContext.defaultParallelism), registered_executors(session))
        paths = [asdict(path) for path in self._paths]
        driver = {"host": socket.gethostname(), "versions": versions(), "paths": paths}
        probe = partial(_probe, json.dumps(driver))

        def collected(tasks: DataFrame) -> list[_Result]:
            # A task with a source and a sink needs two workers.
            passed = tasks.mapInArrow(_pass, "failures string")
            rows = passed.mapInArrow(probe, "result string").collect()
            return [_Result(*json.loads(row.result)) for row in rows]

        try:
            results = collected(tuning_tasks(session, slots))
            failures = {result.failures for result in results} - {""}
        except Exception as error:
            if _without_packages(error) is not None:
                raise
            results, failures = collected(plain_tasks(session, slots)), {_first_line(error)}
        if failures:
            self._log.warning(_UNTUNED, reasons=sorted(failures))
        return results


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _without_packages(error: BaseException) -> UserError | None:
    """Returns the error of executors without Penstock, or with another Python; None for others."""
    found = _NO_PACKAGES.search(str(error))
    if found is None:
        return None
    return UserError(
        "the executors cannot start the Python workers of Penstock",
        code="other-versions", detail=found[0], hint=PACKAGES_HINT,
    )  # fmt: skip


def _pass(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


@encode_errors
def _probe(expected: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the differences between this machine and that of the driver."""
    failures = "".join(text for batch in batches for text in batch["failures"].to_pylist())
    time.sleep(_PROBE_SECONDS)
    driver = json.loads(expected)
    reasons = [SharedPath(**values).difference() for values in driver["paths"]]
    missing = [
        (number, describe(reason, driver["host"]))
        for number, reason in enumerate(reasons)
        if reason is not None
    ]
    result = _Result(_with_host(failures), different_versions(driver), missing)
    yield pa.RecordBatch.from_pylist([{"result": json.dumps(result)}], schema=_PROBE)


def _with_host(failures: str) -> str:
    """Returns the failures of a task as one line, with the host; nothing without any."""
    lines = failures.splitlines()
    return f"executor on {socket.gethostname()}: {'; '.join(lines)}" if lines else ""
