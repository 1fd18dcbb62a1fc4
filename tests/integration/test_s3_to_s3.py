"""A pipeline from an object store to an object store, cut off in the middle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.app import RunOptions
from penstock.core.error_report import format_error
from penstock.plan.explain import explain
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.outcome import Outcome
from penstock.runtime.state.directory import StateDirectory
from servers.s3 import S3, Bucket

pytestmark = pytest.mark.spark

PIPELINE = """\
name: copy
runtime: {restart: {attempts: 1}}
connections:
  store:
    type: files
    storage:
      endpoint_url: "${ENDPOINT}"
      auth: {access_key: "${KEY}", secret_key: "${SECRET}"}
sources:
  clicks:
    type: files
    connection: store
    path: s3://${BUCKET}/in/*.jsonl
    schema: id LONG, page STRING
    order: name
    max_files: 1
transforms:
  known:
    type: filter
    from: clicks
    where: page IS NOT NULL
sinks:
  lake:
    type: files
    connection: store
    from: known
    path: s3://${BUCKET}/lake
    partition_by: [page]
"""
FILES = 6
ROWS = 50


def test_every_row_arrives_once(
    tmp_path: Path, penstock_spark: SparkSession, s3: S3, bucket: Bucket
) -> None:
    for number in range(FILES):
        rows = [{"id": number * ROWS + at, "page": f"p{at % 2}"} for at in range(ROWS)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        bucket.put(f"in/{number}.jsonl", (lines + "nonsense\n").encode())
    (tmp_path / "copy.yaml").write_text(PIPELINE)
    sets = {
        "ENDPOINT": s3.storage["endpoint_url"], "KEY": s3.access_key,
        "SECRET": s3.secret_key, "BUCKET": bucket.name,
    }  # fmt: skip
    plan = app.plan(tmp_path / "copy.yaml", env=sets)

    def cut() -> None:
        if len(bucket.names("lake")) >= 4:
            s3.gate.stop()

    def run(**options: Any) -> Outcome:
        given = RunOptions(on_note=print, **options)
        return app.run(plan, spark=penstock_spark.newSession(), options=given)

    try:
        broken = run(on_tick=cut)
    finally:
        s3.gate.start()
    [error] = broken.errors.values()
    assert broken.exit_code == 3
    assert f"Check that {s3.storage['endpoint_url']} is running" in format_error(error)
    whole = run()
    assert not whole.errors
    found = [line for name in bucket.names("lake") for line in bucket.get(name).splitlines()]
    assert sorted(json.loads(line)["id"] for line in found) == list(range(FILES * ROWS))
    state = StateDirectory(plan.state)
    dead_letters = DeadLetters(state.dead_letters).read().to_pylist()
    origins = sorted(letter["origin"] for letter in dead_letters)
    assert origins == [f"{bucket.url}/in/{number}.jsonl" for number in range(FILES)]
    shown = f"{explain(plan)!r} {format_error(error)} {dead_letters}"
    assert s3.secret_key not in shown
    texts = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()]
    assert not any(s3.secret_key.encode() in text for text in texts)
