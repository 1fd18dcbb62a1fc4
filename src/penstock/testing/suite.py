"""Test cases of pipeline files, and their Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import app
from penstock.spec.front_end import SCRIPT_SUFFIX, companion_test_file, is_test_file
from penstock.spec.parsed import Overrides
from penstock.testing.case import Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.buffer.pageSize": "256k",
    "spark.driver.defaultJavaOptions": "-Xmn600m",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.liveUpdate.period": "1h",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
}
"""Settings for a few rows: generated code, pages of 16 MB for each group of rows, and Spark's UI
would take longer than the query. So would collections of a young generation of Java's default
size: plans are many objects that do not live long."""
_HEAP = "2g"
"""The maximum heap. The queries of many cases leave data until their session is removed, and Java
collects a heap that is nearly full again and again."""


def load_cases(
    path: str | Path, *, overrides: Overrides = (), env: Mapping[str, str] | None = None
) -> list[Case]:
    """Returns the cases of a pipeline file and of its test file (`x.test.yaml` for `x.yaml`).

    Raises UserError, ValidationErrors.
    """
    from penstock.runtime.state.pipeline import open_state
    from penstock.runtime.state.primary_keys import apply_stored_keys, without_unknown_keys
    from penstock.runtime.state.schemas import read_pinned

    test_file = companion_test_file(path)
    files = [path, test_file] if test_file.is_file() else [path]
    plan = app.plan(files, overrides=overrides, env=env)
    state = open_state(plan)
    plan = apply_stored_keys(plan, state) or without_unknown_keys(plan)
    schemas = read_pinned(plan, state)
    return [Case(plan, index, schemas) for index in range(len(plan.spec.tests))]


def find_pipeline_files(paths: Sequence[Path]) -> list[Path]:
    """Returns the files without duplicates. A test file is replaced by its pipeline file.

    That is `x.yaml` or else `x.sql` for `x.test.yaml`.
    """
    files: dict[Path, None] = {}
    for path in paths:
        stem = path.stem.removesuffix(".test")
        names = (stem + suffix for suffix in (path.suffix, SCRIPT_SUFFIX))
        pipelines = map(path.with_name, names if is_test_file(path) else [path.name])
        files[next(filter(Path.is_file, pipelines), path)] = None
    return list(files)


def matches_patterns(case: Case, patterns: Sequence[str]) -> bool:
    """Returns whether the name of a case contains or matches a pattern; True without patterns."""
    name = case.spec.name.lower()
    lowered = [pattern.lower() for pattern in patterns]
    return not lowered or any(pattern in name or fnmatchcase(name, pattern) for pattern in lowered)


@contextmanager
def case_session(
    packages: Sequence[str] = (), log_file: Path | None = None, heap: str = _HEAP
) -> Iterator[SparkSession]:
    """Yields a local Spark session with settings for a few rows."""
    from penstock.engine.spark_session.session import session
    from penstock.engine.spark_session.settings import SessionSettings

    conf = {**_SETTINGS, **({"spark.jars.packages": ",".join(packages)} if packages else {})}
    settings = SessionSettings(master="local[2]", conf=conf, log_file=log_file, heap=heap)
    with session(settings) as spark:
        yield spark
