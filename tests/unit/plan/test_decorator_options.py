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
    ("options", "definition", "concurrency", "time_limit"),
    [
        ("ordered=True, allowed_in_flight=100, timeout='5s'", "async def", 100, 5),
        ("unordered=True, concurrency=3", "async def", 3, 30),
        ("timeout=0.5", "async def", 10, 0.5),
        ("timeout='2 minutes'", "def", 10, 120),
        ("", "def", 10, 3600),
    ],
)
def test_options(options: str, definition: str, concurrency: int, time_limit: float) -> None:
    file = read(options, definition)
    (function,) = file.functions()
    assert not file.errors
    assert (function.concurrency, function.time_limit) == (concurrency, time_limit)


@pytest.mark.parametrize(
    ("options", "definition", "message", "column"),
    [
        ("ordered=True, unordered=True", "async def",
         'expected only one of "ordered" and "unordered"', 20),
        ("concurrency=1, allowed_in_flight=1", "async def",
         'expected only one of "concurrency" and "allowed_in_flight"', 21),
        ("concurrency=0", "async def", 'the option "concurrency" is 0, expected at least 1', 6),
        ("concurrency=True", "async def", 'the option "concurrency" has the wrong type: True', 6),
        ("timeout='soon'", "def", "timeout: ", 6),
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
