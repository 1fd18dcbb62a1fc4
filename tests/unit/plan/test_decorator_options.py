"""Options of decorators, also in the spelling of Arroyo."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.plan.functions.decorated import DecoratedFile
from penstock.spec.documents.reading import load


def read(options: str, definition: str = "async def") -> DecoratedFile:
    head = f"from arroyo_udf import udf\n\n@udf({options})"
    text = f"{head}\n{definition} f(x: int) -> int:\n    return x\n"
    return DecoratedFile(Path("f.py"), "f.py", text)


@pytest.mark.parametrize(
    ("options", "concurrency", "timeout"),
    [
        ("ordered=True, allowed_in_flight=100, timeout='5s'", 100, 5),
        ("unordered=True, concurrency=3", 3, 30),
        ("timeout=0.5", 10, 0.5),
    ],
)
def test_options(options: str, concurrency: int, timeout: float) -> None:
    file = read(options)
    (function,) = file.functions()
    assert not file.errors
    assert (function.concurrency, function.timeout) == (concurrency, timeout)


@pytest.mark.parametrize(
    ("options", "definition", "message", "column"),
    [
        ("ordered=True, unordered=True", "async def",
         'expected only one of "ordered" and "unordered"', 20),
        ("concurrency=1, allowed_in_flight=1", "async def",
         'expected only one of "concurrency" and "allowed_in_flight"', 21),
        ("concurrency=0", "async def", 'the option "concurrency" is 0, expected at least 1', 6),
        ("concurrency=True", "async def", 'the option "concurrency" has the wrong type: True', 6),
        ("timeout='soon'", "async def", "timeout: ", 6),
        ("timeout=5", "def", "timeout is an option of async functions", 1),
        ("ordered=True", "def", "ordered is an option of async functions", 1),
        ("allowed=5", "async def", 'unknown option "allowed"', 6),
    ],
)  # fmt: skip
def test_wrong_options(options: str, definition: str, message: str, column: int) -> None:
    file = read(options, definition)
    assert not file.functions()
    (error,) = file.errors
    assert error.message.startswith(message)
    assert error.where is not None and error.where.column == column


def test_options_in_scripts(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON\n"
        "WITH (unordered = true, allowed_in_flight = 100, timeout = '5 seconds') "
        "AS $$ return await x $$;"
    )
    function = load([path], env={}).root.data()["functions"]["f"]
    assert (function["ordered"], function["concurrency"]) == (False, 100)
    assert function["timeout"] == "5 seconds"
