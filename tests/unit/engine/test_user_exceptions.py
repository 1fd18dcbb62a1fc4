"""Any exception of the user's code is the error of its row, in functions and in transforms."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.core.exits import exception_text, exits_as_exceptions
from penstock.engine.functions.coroutines import NoResult, call_concurrently
from penstock.engine.functions.evaluate import Evaluation
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.engine.tasks.function import Step
from penstock.plan.functions.model import Function, Parameter
from penstock.runtime.dead_letters.store import read_file
from penstock.sdk.component import Context
from penstock.transforms.python import Python, PythonConfig

X = (Parameter("x", pa.int64()),)
DEFINITIONS = """\
import asyncio
class Silent(Exception):
    def __str__(self):
        raise ValueError
class Leaving(Exception):
    def __str__(self):
        raise SystemExit
class Hidden:
    def __repr__(self):
        raise SystemExit
    __iter__ = __float__ = __index__ = __len__ = __repr__
"""
EXCEPTIONS = {
    "asyncio.CancelledError()": "CancelledError",
    "KeyboardInterrupt()": "KeyboardInterrupt",
    "GeneratorExit()": "GeneratorExit",
    "SystemExit(3)": "SystemExit: 3",
    "BaseExceptionGroup('a', [KeyboardInterrupt()])": "BaseExceptionGroup: a (1 sub-exception)",
    "StopIteration()": "StopIteration",
    "Silent()": "Silent",
    "Leaving()": "Leaving",
}


@pytest.mark.parametrize("exception", EXCEPTIONS)
@pytest.mark.parametrize("per", ["row", "batch"])
def test_transform(tmp_path: Path, exception: str, per: str) -> None:
    value = "row['id']" if per == "row" else "row['id'].to_pylist()"
    test = f"{value} == 2" if per == "row" else f"2 in {value}"
    code = f"{DEFINITIONS}def transform(row):\n  if {test}: raise {exception}\n  return row"
    config = PythonConfig.model_validate({"code": code, "per": per, "schema": "id LONG"})
    rows = pa.record_batch([[1, 2, 3]], names=["id"])
    spool = Spool("p", "q", "n", "transform", directory=str(tmp_path / "q"))
    step = Step(Python(config, Context(node="n")), rows.schema, spool)
    output = [row["id"] for batch in step.run(iter([rows]), 0, 0) for row in batch.to_pylist()]
    assert output == [1, 3]
    (letter,) = read_file(tmp_path / "q/0/n-transform-0.arrow").to_pylist()
    text = EXCEPTIONS[exception]
    if exception == "StopIteration()":
        text = "RuntimeError: generator raised StopIteration"
    assert (letter["message"], letter["payload"]) == (text, b'{"id": 2}')


def errors(code: str, **options: object) -> list[str | None]:
    """Returns the errors of a function for the values 1, 2 and 3."""
    options = {"parameters": X, "returns": pa.int64(), **options}
    function = Function("f", code=DEFINITIONS + code, entry="f", **options)  # type: ignore[arg-type]
    column = pa.array([1, 2, 3])
    if options.get("kind") == "aggregate":
        column = pa.array([[{"x": 1}], [{"x": 2}], [{"x": 3}]])
    result = Evaluation(function)(column).to_pylist()
    assert [row["value"] is None for row in result] == [row["error"] is not None for row in result]
    return [row["error"] for row in result]


FORMS: dict[str, tuple[str, dict[str, object]]] = {
    "row": ("def f(x):\n  if x == 2: {}\n  return x", {}),
    "async": ("async def f(x):\n  if x == 2: {}\n  return x", {"is_async": True}),
    "aggregate": ("def f(x):\n  if 2 in x: {}\n  return 1", {"kind": "aggregate"}),
    "vectorized": (
        "def f(x):\n  if 2 in x.to_pylist(): {}\n  return x", {"vectorized": True},
    ),
    "table": (
        "def f(x):\n  if x == 2: {}\n  yield {{'n': x}}",
        {"kind": "table", "returns": pa.struct([("n", pa.int64())])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("exception", EXCEPTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_function(exception: str, form: str) -> None:
    code, options = FORMS[form]
    found = errors(code.format(f"raise {exception}"), **options)
    assert found[0] is found[2] is None
    text = EXCEPTIONS[exception]
    if exception == "StopIteration()" and form in ("async", "table"):
        text = "RuntimeError: "
    assert found[1] is not None and found[1].startswith(f'function "f" failed: {text}')


def test_value_without_text() -> None:
    found = errors("def f(x): return Hidden() if x == 2 else x")
    assert found[0] is found[2] is None
    assert found[1] is not None and found[1].endswith("found a value without text (Hidden)")


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "wait",
    [
        "await asyncio.sleep(60)",
        "\n    while True:\n      try: await asyncio.sleep(60)\n"
        "      except asyncio.CancelledError: pass",
        "__import__('time').sleep(60)",
        "\n    while True: pass",
        "\n    try: __import__('time').sleep(60)\n    except BaseException: pass\n"
        "    await asyncio.sleep(60)",
    ],
    ids=["waits", "swallows its cancellation", "sleeps", "computes", "swallows the alarm"],
)
def test_time_limit(wait: str) -> None:
    code = f"async def f(x):\n  if x == 2: {wait}\n  return x"
    found = errors(code, is_async=True, timeout=0.05)
    assert found == [None, 'function "f" failed: no result within 50ms', None]


def test_calls_after_a_blocked_one() -> None:
    async def call(number: int) -> int:
        if number == 2:
            await asyncio.sleep(60)
        await asyncio.sleep(0.001 * number)
        return number

    results = call_concurrently([lambda n=n: call(n) for n in range(5)], 1, 0.1)  # type: ignore[misc]
    assert [result for result in results if isinstance(result, int)] == [0, 1, 3, 4]
    assert isinstance(results[2], NoResult)


def test_signals_pass_where_they_are_expected() -> None:
    with pytest.raises(KeyboardInterrupt), exits_as_exceptions(KeyboardInterrupt):
        raise KeyboardInterrupt
    with pytest.raises(Exception, match="x") as raised, exits_as_exceptions():
        raise KeyboardInterrupt("x")
    assert exception_text(raised.value) == "KeyboardInterrupt: x"
