"""Exits in the code of a transform of the type python: errors of records, or of the node."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.errors import PlanError
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.function import Step
from penstock.runtime.dead_letters.store import read_file
from penstock.sdk.component import Context
from penstock.transforms.python import Python, PythonConfig

ROWS = pa.record_batch([[1, 2, 3]], names=["id"])


def transform(code: str, per: str = "row") -> Python:
    config = PythonConfig.model_validate({"code": code, "per": per, "schema": "id LONG"})
    return Python(config, Context(node="n"))


@pytest.mark.parametrize(
    ("per", "code"),
    [
        ("row", "import sys\ndef transform(row):\n  if row['id'] == 2: sys.exit(3)\n  return row"),
        ("batch", "def transform(rows):\n  if 2 in rows['id'].to_pylist(): raise SystemExit(3)\n"
         "  yield rows"),
    ],
)  # fmt: skip
def test_an_exit_makes_the_row_a_dead_letter(tmp_path: Path, per: str, code: str) -> None:
    spool = Spool("p", "q", "n", "transform", directory=str(tmp_path / "spool/q"))
    step = Step(transform(code, per), ROWS.schema, spool)
    output = [row for batch in step.run(iter([ROWS]), 0, 0) for row in batch.to_pylist()]
    assert output == [{"id": 1}, {"id": 3}]
    (letter,) = read_file(tmp_path / "spool/q/0/n-transform-0.arrow").to_pylist()
    assert (letter["message"], letter["payload"]) == ("SystemExit: 3", b'{"id": 2}')


def test_an_exit_of_the_module_is_an_error_with_its_line() -> None:
    with pytest.raises(PlanError, match=r"the code failed: SystemExit: 3 \(line 2 of the code\)"):
        transform("def transform(row): return row\nraise SystemExit(3)").output(ROWS.schema)
