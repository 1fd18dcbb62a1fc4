"""Open transforms of a process: opened once, closed when they are no longer needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import PlanError
from penstock.engine.workers.open_transforms import OpenTransforms
from penstock.sdk.component import Context
from penstock.transforms.python import Python, PythonConfig

MODULE = """
import os

class Model:
    def open(self):
        with open({log!r}, "a") as file:
            file.write("open\\n")

    def transform(self, batch):
        return batch

    def close(self):
        with open({log!r}, "a") as file:
            file.write("close\\n")
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    (tmp_path / "model.py").write_text(MODULE.format(log=str(path)))
    return path


def transform(log: Path, **options: Any) -> Python:
    config = PythonConfig.model_validate({"function": "model:Model", **options})
    return Python(config, Context(node="scored", base=log.parent))


def test_tasks_share_a_transform(log: Path) -> None:
    pool = OpenTransforms()
    rows = pa.record_batch([[1]], names=["n"])
    for _ in range(3):
        with pool.using(transform(log), "run") as opened:
            assert list(opened.apply(rows)) == [rows]
    assert log.read_text() == "open\n"
    pool.close()
    pool.close()
    assert log.read_text() == "open\nclose\n"


def test_a_closed_transform_is_opened_again(log: Path) -> None:
    scored, rows = transform(log), pa.record_batch([[1]], names=["n"])
    for _ in range(2):
        assert list(scored.apply(rows)) == [rows]
        scored.close()
    assert log.read_text() == "open\nclose\n" * 2


def test_another_run_opens_the_transform_again(log: Path) -> None:
    pool = OpenTransforms()
    for run in "first", "second":
        with pool.using(transform(log), run):
            pass
    assert log.read_text() == "open\nclose\nopen\n"


def test_other_options_and_other_code_open_the_transform_again(log: Path) -> None:
    pool = OpenTransforms()
    (log.parent / "model.py").write_text(
        (log.parent / "model.py").read_text() + "    def __init__(self, size=1): pass\n"
    )
    with pool.using(transform(log), "run"):
        pass
    with pool.using(transform(log, options={"size": 2}), "run"):
        pass
    assert log.read_text() == "open\nclose\nopen\n"
    text = (log.parent / "model.py").read_text().replace('"open\\n"', '"changed\\n"')
    (log.parent / "model.py").write_text(text)
    with pool.using(transform(log, options={"size": 2}), "run"):
        pass
    assert log.read_text() == "open\nclose\nopen\nclose\nchanged\n"


def test_a_failure_closes_the_transform(log: Path) -> None:
    pool = OpenTransforms()
    with pytest.raises(ZeroDivisionError), pool.using(transform(log), "run"):
        raise ZeroDivisionError
    assert log.read_text() == "open\nclose\n"
    pool.close()
    assert log.read_text() == "open\nclose\n"


def test_nested_tasks_have_transforms_of_their_own(log: Path) -> None:
    pool = OpenTransforms()
    with pool.using(transform(log), "run") as outer, pool.using(transform(log), "run") as inner:
        assert outer is not inner
    assert log.read_text() == "open\nopen\nclose\n"
    pool.close()
    assert log.read_text() == "open\nopen\nclose\nclose\n"


def test_a_transform_that_cannot_be_opened(log: Path) -> None:
    code = "class Model:\n  transform = None\n  def open(self): raise OSError('no weights')\n"
    failing = Python(
        PythonConfig.model_validate({"code": code, "function": "Model"}), Context(node="scored")
    )
    with (
        pytest.raises(PlanError, match='"scored" cannot be opened: OSError: no weights'),
        OpenTransforms().using(failing, "run"),
    ):
        pass
