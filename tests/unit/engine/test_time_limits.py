"""Time limits of calls of Python functions and transforms, without Spark."""

from __future__ import annotations

import faulthandler
import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core import time_limit
from penstock.core.errors import PlanError, RecordError
from penstock.core.exits import exits_as_exceptions
from penstock.core.time_limit import NoResult, call_within
from penstock.engine.functions import coroutines
from penstock.engine.functions.evaluate import Evaluation
from penstock.engine.tasks import function as tasks
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.function import Step
from penstock.plan.functions.model import Function, Parameter
from penstock.runtime.dead_letters.store import read_file
from penstock.sdk import Context, bisect_failures, forked_calls
from penstock.sdk.bisect_failures import FailedRow
from penstock.sdk.forked_calls import call_forked
from penstock.transforms.python import Python, PythonConfig

pytestmark = pytest.mark.slow

X = (Parameter("x", pa.int64()),)
ROWS = pa.record_batch({"id": pa.array(range(40))})
HANGS = {
    "computes": "\n    while True: pass",
    "sleeps": "__import__('time').sleep(1e9)",
    "backtracks": "__import__('re').match('(a+)+b', 'a' * 60)",
    "catches exceptions": "\n    while True:\n      try: __import__('time').sleep(1e9)\n"
    "      except Exception: pass",
}
STUCK = {
    "holds the interpreter": "any(__import__('itertools').repeat(0))",
    "swallows alarms": "\n    while True:\n      try: __import__('time').sleep(1e9)\n"
    "      except BaseException: pass",
}
FORMS: dict[str, tuple[str, dict[str, object]]] = {
    "row": ("def f(x):\n  if x == 2: {}\n  return x", {}),
    "aggregate": ("def f(x):\n  if 2 in x: {}\n  return 1", {"kind": "aggregate"}),
    "vectorized": ("def f(x):\n  if 2 in x.to_pylist(): {}\n  return x", {"vectorized": True}),
    "table": (
        "def f(x):\n  if x == 2: {}\n  yield {{'n': x}}",
        {"kind": "table", "returns": pa.struct([("n", pa.int64())])},
    ),
}  # fmt: skip


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "GRACE", 0.1)
    for module in (time_limit, coroutines, forked_calls):
        monkeypatch.setattr(module, "ALARM_INTERVAL", 0.1)


def function(code: str, **options: object) -> Function:
    options = {"parameters": X, "returns": pa.int64(), "timeout": 0.05, **options}
    return Function("f", code=code, entry="f", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("hang", HANGS)
@pytest.mark.parametrize("form", FORMS)
def test_a_call_beyond_its_limit_is_an_error_of_its_row(hang: str, form: str) -> None:
    code, options = FORMS[form]
    column = pa.array([1, 2, 3])
    if form == "aggregate":
        column = pa.array([[{"x": 1}], [{"x": 2}], [{"x": 3}]])
    result = Evaluation(function(code.format(HANGS[hang]), **options))(column).to_pylist()
    assert [row["error"] for row in result] == [
        None, 'function "f" failed: no result within 50ms', None,
    ]  # fmt: skip
    assert [row["value"] is None for row in result] == [False, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("hang", STUCK)
@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_a_fork_that_ignores_its_limit_is_killed(
    hang: str, is_async: bool, short_times: None
) -> None:
    head = "async def" if is_async else "def"
    code = f"{head} f(x):\n  if x == 5: {STUCK[hang]}\n  return x"
    evaluation = Evaluation(function(code, is_async=is_async))
    result = evaluation._evaluate_forked([pa.array(range(8) if is_async else range(100))])
    errors = {row: each["error"] for row, each in enumerate(result.to_pylist()) if each["error"]}
    assert errors == {5: 'function "f" failed: no result within 50ms'}


@pytest.mark.quick(1)
@pytest.mark.parametrize(("hang", "code"), [*zip(STUCK.values(), [1, 75], strict=True)], ids=STUCK)
@pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
def test_a_worker_that_ignores_its_limit_ends(
    hang: str, code: int, is_async: bool, short_times: None
) -> None:
    head = "async def" if is_async else "def"
    evaluation = Evaluation(function(f"{head} f(x):\n  {hang}", is_async=is_async))
    faulthandler.cancel_dump_traceback_later()  # A thread of pytest, which a fork would wait for.
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            evaluation(pa.array([1]))
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code


@pytest.mark.parametrize("per", ["row", "batch"])
@pytest.mark.parametrize("hang", HANGS)
def test_a_transform_beyond_its_limit(per: str, hang: str, tmp_path: Path) -> None:
    found = "x['id'] in (3, 30)" if per == "row" else "{3, 30} & set(x['id'].to_pylist())"
    code = f"def transform(x):\n  if {found}: {HANGS[hang]}\n  return x"
    config = PythonConfig.model_validate(
        {"code": code, "per": per, "schema": "id LONG", "timeout": "20ms"}
    )
    spool = Spool("p", "q", "n", "transform", directory=str(tmp_path / "q"))
    step = Step(Python(config, Context(node="n")), ROWS.schema, spool)
    output = [row["id"] for batch in step.run(iter([ROWS]), 0, 0) for row in batch.to_pylist()]
    assert output == [number for number in range(40) if number not in (3, 30)]
    letters = read_file(tmp_path / "q/0/n-transform-0.arrow").to_pylist()
    assert [(each["message"], each["code"], each["payload"]) for each in letters] == [
        ("no result within 20ms", "function-failed", b'{"id": 3}'),
        ("no result within 20ms", "function-failed", b'{"id": 30}'),
    ]


@pytest.mark.parametrize("hang", ["computes", "sleeps"])
def test_a_transform_that_does_not_open_in_time(hang: str, tmp_path: Path) -> None:
    code = f"class T:\n  def open(self):\n    {HANGS[hang]}\n  def transform(self, x): return x"
    config = PythonConfig.model_validate({"code": code, "function": "T", "timeout": "50ms"})
    spool = Spool("p", "q", "n", "transform", directory=str(tmp_path / "q"))
    step = Step(Python(config, Context(node="n")), ROWS.schema, spool)
    with pytest.raises(PlanError, match='"n" cannot be opened: no result within 50ms'):
        list(step.run(iter([ROWS]), 0, 0))


def test_code_that_does_not_load_in_time() -> None:
    code = "import time\ntime.sleep(1e9)\ndef f(x): return x"
    with pytest.raises(Exception, match='"f" cannot be loaded: no result within 50ms'):
        Evaluation(function(code))(pa.array([1]))


def test_calls_within_the_limit_have_no_error() -> None:
    code = "import time\ndef f(x):\n  time.sleep(0.02)\n  return x"
    result = Evaluation(function(code, timeout=1))(pa.array(range(60))).to_pylist()
    assert [row["value"] for row in result] == list(range(60))
    assert [row["error"] for row in result] == [None] * 60


def test_failing_rows_of_known_index_need_two_calls() -> None:
    calls = []

    def attempt(start: int, stop: int) -> list[int]:
        calls.append((start, stop))
        for number in range(start, stop):
            if number % 10 == 3:
                raise FailedRow(number - start, NoResult.within(1))
        return list(range(start, stop))

    parts = list(bisect_failures(30, attempt))
    assert [(start, stop) for start, stop, _ in parts] == [
        (0, 3), (3, 4), (4, 13), (13, 14), (14, 23), (23, 24), (24, 30),
    ]  # fmt: skip
    failed = [start for start, _, result in parts if isinstance(result, RecordError)]
    assert failed == [3, 13, 23]
    assert len(calls) == 7


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda: os._exit(4), "the function ended its process with exit code 4"),
        (lambda: any(itertools.repeat(0)), "no result within 50ms"),
    ],
    ids=["exit", "hang"],
)
def test_a_fork_without_rows(end: Callable[[], object], message: str, short_times: None) -> None:
    with pytest.raises(RecordError, match=message):
        call_forked(partial(call_within, 0.05, end))


def test_a_call_after_an_interrupted_one() -> None:
    for _ in range(3):
        with pytest.raises(NoResult):
            call_within(0.02, lambda: time.sleep(1e9))
    assert call_within(0.02, lambda: 5) == 5
    with exits_as_exceptions(), pytest.raises(Exception, match="3") as raised:
        call_within(1, partial(exit, 3))
    assert type(raised.value).__name__ == "SystemExit"


@pytest.mark.quick(3)
@pytest.mark.parametrize("place", ["code", "open", "transform"])
@pytest.mark.parametrize(
    ("statement", "end"),
    [
        ("os._exit(5)", "the function ended its process with exit code 5"),
        ("os.kill(os.getpid(), 11)", "the function ended its process with signal SIGSEGV"),
        ("time.sleep(1e9)", "no result within 50ms"),
    ],
)
def test_inferred_columns_of_code_that_ends_the_process(
    statement: str, end: str, place: str
) -> None:
    parts = {each: statement if each == place else "pass" for each in ("code", "open", "transform")}
    code = (
        f"import os, time\n{parts['code']}\nclass T:\n  def open(self): {parts['open']}\n"
        f"  def transform(self, batch): {parts['transform']}; return batch"
    )
    config = {"code": code, "function": "T", "timeout": "50ms"}
    with pytest.raises(PlanError) as raised:
        Python(PythonConfig.model_validate(config), Context(node="n")).output(ROWS.schema)
    assert raised.value.code == "failed-open"
    assert raised.value.message == f'transform "n" cannot be opened: {end}'


def test_inferred_columns() -> None:
    code = (
        "def transform(batch):\n  print('inferred')\n  return batch.append_column('x', batch['id'])"
    )
    transform = Python(PythonConfig.model_validate({"code": code}), Context(node="n"))
    assert transform.output(ROWS.schema).names == ["id", "x"]


@contextmanager
def crashed(name: str) -> Iterator[bool]:
    yield True


@pytest.mark.slow
@pytest.mark.parametrize("per", ["row", "batch"])
def test_a_transform_in_forks(
    per: str, tmp_path: Path, short_times: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "crash_mark", crashed)
    ids = "{x['id']}" if per == "row" else "{*x['id'].to_pylist()}"
    code = (
        "import itertools, os, time\n"
        f"def transform(x):\n  ids = {ids}\n  if 3 in ids: any(itertools.repeat(0))\n"
        "  if 7 in ids: os._exit(4)\n  if 8 in ids: time.sleep(1e9)\n"
        "  if 9 in ids: raise ValueError('nine')\n  return x"
    )
    config = PythonConfig.model_validate(
        {"code": code, "per": per, "schema": "id LONG", "timeout": "20ms"}
    )
    spool = Spool("p", "q", "n", "transform", directory=str(tmp_path / "q"))
    step = Step(Python(config, Context(node="n")), ROWS.schema, spool)
    rows = ROWS.slice(0, 12)
    output = [row["id"] for batch in step.run(iter([rows]), 0, 0) for row in batch.to_pylist()]
    assert output == [0, 1, 2, 4, 5, 6, 10, 11]
    letters = read_file(tmp_path / "q/0/n-transform-0.arrow").to_pylist()
    assert [(each["payload"], each["code"], each["message"]) for each in letters] == [
        (b'{"id": 3}', "function-failed", "no result within 20ms"),
        (b'{"id": 7}', "function-crashed", "the function ended its process with exit code 4"),
        (b'{"id": 8}', "function-failed", "no result within 20ms"),
        (b'{"id": 9}', "rejected", "ValueError: nine"),
    ]
