"""Runs of transforms in sandbox processes, for tests."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.function import Step
from penstock.sdk import Transform
from penstock.sdk.registry import find

THREE = pa.record_batch({"id": [1, 2, 3], "s": ["a", "b", "c"]})


def make(type_: str, **options: Any) -> Transform[Any]:
    """Returns a transform with these options."""
    component = find("transform", type_)
    made = component.create(component.config_type.model_validate(options))
    assert isinstance(made, Transform)
    return made


def run(
    directory: Path, type_: str, batch: pa.RecordBatch = THREE, **options: Any
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Returns the rows of a transform, and the messages of the dead letters by `id`."""
    with closing(make(type_, **options)) as transform:
        spool = Spool("p", "q", "t", "transform", directory=str(directory))
        step = Step(transform, transform.output(batch.schema), spool)
        rows = [row for out in step.run(iter([batch]), 0, 0) for row in out.to_pylist()]
    files = [ipc.open_file(str(file)).read_all() for file in directory.rglob("*.arrow")]
    letters = [row for file in files for row in file.to_pylist()]
    found = {}
    for letter in letters:
        text = letter["payload"]
        payload = text if isinstance(text, str) else bytes(text).decode()
        found[_id(payload)] = letter["message"]
    assert len(found) == len(letters)
    return rows, found


def _id(payload: str) -> int:
    return int(json.loads(payload)["id"])
