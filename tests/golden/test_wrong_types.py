"""Files that are right until Spark looks at them: each gets exactly the text beside it.

PENSTOCK_UPDATE_GOLDEN=1 writes the texts.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError

WRONG = Path(__file__).parent / "wrong_types"
FILES = sorted(path.name for path in WRONG.iterdir() if path.suffix != ".txt")
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", FILES)
def test_wrong_types(
    name: str, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(WRONG)
    golden = Path(name).with_suffix(".txt")
    with pytest.raises(PenstockError) as caught:
        plan, spark = app.plan(name), penstock_spark.newSession()
        app.types(plan, spark)
        app.pushdowns(plan, spark)
    printed = format_error(caught.value) + "\n"
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        golden.write_text(printed, encoding="utf-8")
    assert printed == golden.read_text(encoding="utf-8")
