"""The partitions of a query's state: a repartitioning that fails, and one that is interrupted."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from penstock.core.errors import StateError
from penstock.engine.checkpoints.state_partitions import StatePartitions


def write_offsets(checkpoint: Path, batch: int, partitions: int) -> None:
    """Writes the entry of a batch to the offset log, with the checksum that Spark adds."""
    header = json.dumps({"conf": {"spark.sql.shuffle.partitions": f"{partitions}"}})
    (checkpoint / "offsets").mkdir(exist_ok=True)
    (checkpoint / f"offsets/{batch}").write_text(f"v2\n{header}\n{{}}")
    (checkpoint / f"offsets/.{batch}.crc").write_text("")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint with a state of two partitions after batch 0."""
    write_offsets(tmp_path, 0, 2)
    for name in ("commits", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "commits/0").write_text("v1\n{}")
    return tmp_path


def session(error: Exception) -> Any:
    """Returns a session in which a repartitioning writes its first entry, and then fails."""

    def repartition(checkpoint: str, number: int) -> None:
        write_offsets(Path(checkpoint), 1, number)
        raise error

    return SimpleNamespace(_streamingCheckpointManager=SimpleNamespace(repartition=repartition))


def test_a_state_that_spark_rejects_remains_as_it_was(checkpoint: Path) -> None:
    before = {path: path.read_text() for path in checkpoint.rglob("*") if path.is_file()}
    with pytest.raises(StateError, match="repartitioned into 5 partitions") as caught:
        error = PySparkException("the operator is not supported")
        StatePartitions(checkpoint).repartition(session(error), 5)
    assert caught.value.code == "fixed-partitions"
    assert "not supported" in str(caught.value.detail)
    assert {path: path.read_text() for path in checkpoint.rglob("*") if path.is_file()} == before
    partitions = StatePartitions(checkpoint)
    assert (partitions.number, partitions.interrupted) == (2, False)


def test_a_repartitioning_that_java_did_not_survive_is_interrupted(checkpoint: Path) -> None:
    """Java may have completed it, so that its entry in the offset log must remain."""
    with pytest.raises(Py4JNetworkError):
        StatePartitions(checkpoint).repartition(session(Py4JNetworkError("no answer")), 5)
    partitions = StatePartitions(checkpoint)
    assert (partitions.number, partitions.interrupted) == (5, True)
    assert not partitions.has_batch_in_progress


def test_a_planned_batch_is_not_a_repartitioning(checkpoint: Path) -> None:
    write_offsets(checkpoint, 1, 2)
    partitions = StatePartitions(checkpoint)
    assert partitions.has_batch_in_progress and not partitions.interrupted
    partitions.remove_planned_batch()
    assert not partitions.has_batch_in_progress
    assert sorted(path.name for path in (checkpoint / "offsets").iterdir()) == [".0.crc", "0"]


def test_a_query_without_state_of_spark_records_the_number(checkpoint: Path) -> None:
    (checkpoint / "state").rmdir()
    StatePartitions(checkpoint).repartition(session(AssertionError()), 7)
    assert StatePartitions(checkpoint).number == 7
