"""Python functions on Arrow arrays: values and errors of rows, without Spark."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.functions.evaluate import Evaluation
from penstock.plan.functions.model import Function, Parameter

INT = pa.int64()
X = (Parameter("x", INT),)


def evaluated(function: Function, *columns: pa.Array) -> list[tuple[object, str | None]]:
    """The value and the error of each row, from a copy as a worker gets it."""
    result = pickle.loads(pickle.dumps(Evaluation(function)))(*columns)
    return [(row["value"], row["error"]) for row in result.to_pylist()]


def test_a_body_has_the_lines_of_its_file() -> None:
    code = "\n  if x == 2:\n    raise ValueError('two')\n  return x\n"
    function = Function("f", parameters=X, returns=INT, code=code, file="dir/a.sql", first_line=7)
    assert evaluated(function, pa.array([1, 2])) == [
        (1, None),
        (None, 'function "f" failed: ValueError: two (a.sql, line 9)'),
    ]


def test_a_function_without_parameters_is_called_for_each_row() -> None:
    function = Function("f", returns=INT, code="return 3")
    assert evaluated(function, pa.array([0, 0])) == [(3, None), (3, None)]


def test_a_parameter_that_is_not_nullable_makes_the_result_null() -> None:
    strict = Function("f", parameters=(Parameter("x", INT, False),), returns=INT, code="return 1")
    assert evaluated(strict, pa.array([None, 5], INT)) == [(None, None), (1, None)]
    called = replace(strict, parameters=X)
    assert evaluated(called, pa.array([None, 5], INT)) == [(1, None), (1, None)]


def test_a_value_of_another_type_is_the_error_of_its_row() -> None:
    function = Function("f", parameters=X, returns=INT, code="return x if x < 2 else str(x)")
    assert evaluated(function, pa.array([1, 2])) == [
        (1, None),
        (None, "function \"f\" failed: expected BIGINT, found '2' (str)"),
    ]


@pytest.mark.parametrize(
    ("type_", "code"),
    [
        (pa.timestamp("us", "UTC"), "return 5 + x"),
        (pa.date32(), "import datetime\nreturn datetime.datetime(2024, 1, x, 12)"),
        (pa.float32(), "return 1e300 * x"),
        (pa.decimal128(8, 0), "import decimal\nreturn decimal.Decimal('5e-39')"),
        (pa.decimal128(38, 18), "import decimal\nreturn decimal.Decimal(5 * 10**20)"),
        (pa.list_(pa.timestamp("us", "UTC")), "return [x]"),
        (INT, "return x + 0.5"),
        (
            pa.list_(pa.date32()),
            "import datetime\n"
            "return [datetime.date(2024, 1, x), datetime.datetime(2024, 1, x, 12)]",
        ),
        (
            pa.struct([("l", pa.list_(pa.date32()))]),
            "import datetime\nreturn {'l': [datetime.date(2024, 1, x), 1]}",
        ),
        (pa.map_(pa.string(), INT), "return {'a': x + 0.5}"),
        (pa.list_(pa.map_(pa.string(), pa.float32())), "return [{'a': 1e300 * x}]"),
        (pa.struct([("m", pa.map_(INT, INT))]), "return {'m': {x + 0.5: 1}}"),
        (
            pa.map_(pa.string(), pa.decimal128(38, 9)),
            "import decimal\nreturn {'a': decimal.Decimal('5e-39')}",
        ),
    ],
    ids=[
        "number",
        "time of day",
        "out of range",
        "small decimal",
        "large decimal",
        "nested",
        "fraction",
        "types in a list",
        "types in a list in a struct",
        "fraction in a map",
        "maps in a list",
        "key",
        "decimal in a map",
    ],
)
def test_a_value_that_would_be_changed_is_the_error_of_its_row(
    type_: pa.DataType, code: str
) -> None:
    function = Function("f", parameters=X, returns=type_, code=code)
    ((value, error),) = evaluated(function, pa.array([1]))
    assert value is None and error is not None and "expected " in error


def test_values_of_several_types_have_no_influence_on_each_other() -> None:
    code = "import datetime\nday = datetime.date(2024, 1, 1)\nreturn [day, 1, None, day][x]"
    function = Function("f", parameters=X, returns=pa.date32(), code=code)
    first, number, none, last = evaluated(function, pa.array([0, 1, 2, 3]))
    assert first == last and first[1] is None and none == (None, None)
    assert number[0] is None and "expected DATE" in str(number[1])


def test_maps_within_values_are_converted() -> None:
    maps = pa.map_(pa.string(), INT)
    type_ = pa.struct([("m", maps), ("l", pa.list_(maps))])
    code = "return [None, {'l': [None, {'a': 2.0}, {}]}, {'m': {'b': None}, 'l': None}][x]"
    function = Function("f", parameters=X, returns=type_, code=code)
    assert evaluated(function, pa.array([0, 1, 2])) == [
        (None, None),
        ({"m": None, "l": [None, [("a", 2)], []]}, None),
        ({"m": [("b", None)], "l": None}, None),
    ]


@pytest.mark.parametrize("is_async", [False, True])
def test_an_argument_that_is_not_utf8_is_the_error_of_its_row(is_async: bool) -> None:
    text = (Parameter("x", pa.string()),)
    function = Function(
        "f", parameters=text, returns=pa.string(), code="return x", is_async=is_async
    )
    texts = pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string())
    assert evaluated(function, texts) == [
        ("a", None),
        (None, 'function "f" failed: an argument is not UTF-8: byte 0xff'),
        (None, None),
    ]


YEAR_0 = pa.array([-62167219200000000, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("type_", [YEAR_0.type, pa.date32()], ids=str)
def test_an_argument_outside_of_pythons_years_is_the_error_of_its_row(
    type_: pa.DataType, nested: bool
) -> None:
    times = YEAR_0.cast(type_)
    column = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), times) if nested else times
    function = Function(
        "f", parameters=(Parameter("x", column.type),), returns=INT, code="return 1"
    )
    assert evaluated(function, column) == [
        (None, 'function "f" failed: an argument is outside of the years 1 to 9999'),
        (1, None),
    ]


def test_an_aggregate_gets_lists_of_the_same_length() -> None:
    parameters = (Parameter("x", INT), Parameter("y", pa.string()))
    function = Function("f", "aggregate", parameters, pa.string(), code="return f'{x} {y}'")
    type_ = pa.list_(pa.struct([("x", INT), ("y", pa.string())]))
    groups = pa.array(
        [[{"x": 9, "y": "z"}], [{"x": 1, "y": None}, {"x": None, "y": "b"}], []], type_
    )
    assert evaluated(function, groups.slice(1)) == [
        ("[1, None] [None, 'b']", None),
        ("[] []", None),
    ]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("[(1, 'a'), {'n': 2, 's': 'b'}]", [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}]),
        ("None", None),
        ("[]", []),
    ],
    ids=["rows", "nothing", "empty"],
)
def test_a_table_function_returns_tuples_or_dicts(returned: str, expected: object) -> None:
    columns = pa.struct([("n", INT), ("s", pa.string())])
    function = Function("f", "table", X, columns, code=f"return {returned}")
    assert evaluated(function, pa.array([1])) == [(expected, None)]


def test_a_table_row_with_too_few_columns_is_an_error_of_the_row() -> None:
    columns = pa.struct([("n", INT), ("s", pa.string())])
    function = Function("f", "table", X, columns, code="return [(1,)] if x == 1 else []")
    ((_, error), second) = evaluated(function, pa.array([1, 2]))
    assert error == 'function "f" failed: ValueError: expected 2 columns, found 1'
    assert second == ([], None)


def test_asynchronous_calls_are_bounded_and_keep_their_order() -> None:
    code = """
import asyncio
running = most = 0

async def f(x):
    global running, most
    running += 1
    most = max(most, running)
    for _ in range(5 - x):
        await asyncio.sleep(0)
    running -= 1
    if x == 3:
        raise KeyError("three")
    return most
"""
    function = Function("f", parameters=X, returns=INT, code=code, entry="f", is_async=True,
                        concurrency=2, file="f.py")  # fmt: skip
    values = evaluated(function, pa.array([0, 1, 2, 3, 4]))
    assert [error is None for _, error in values] == [True, True, True, False, True]
    assert max(value for value, _ in values if isinstance(value, int)) == 2
    assert values[3][1] == "function \"f\" failed: KeyError: 'three' (f.py, line 13)"


def test_a_call_without_a_result_in_time_is_an_error_of_its_row() -> None:
    code = "import asyncio\nawait asyncio.Event().wait() if x else None\nreturn 1"
    function = Function("f", parameters=X, returns=INT, code=code, is_async=True, timeout=0.01)
    assert evaluated(function, pa.array([0, 1])) == [
        (1, None),
        (None, 'function "f" failed: no result within 10ms'),
    ]


def test_a_vectorized_function_fails_on_single_rows() -> None:
    code = """
import pyarrow.compute as pc
if 3 in x.to_pylist():
    raise ValueError("a three")
return pc.multiply(x, 2)
"""
    function = Function("f", parameters=X, returns=INT, code=code, vectorized=True, file="f.py")
    assert evaluated(function, pa.array([1, 2, 3, 4])) == [
        (2, None),
        (4, None),
        (None, 'function "f" failed: ValueError: a three (f.py, line 4)'),
        (8, None),
    ]
    short = replace(function, code="return x[:0]")
    assert evaluated(short, pa.array([1]))[0][1] == (
        'function "f" failed: ValueError: expected 1 values, found 0'
    )


EXIT = "import sys\nif x == 2: sys.exit(3)\n"


@pytest.mark.parametrize(
    ("code", "options"),
    [
        (EXIT + "return x", {}),
        (EXIT + "return x", {"is_async": True}),
        (f"def f(x):\n  x = x[0].as_py()\n  {EXIT.replace(chr(10), chr(10) + '  ')}\n  return [x]",
         {"vectorized": True, "entry": "f"}),
    ],
)  # fmt: skip
def test_an_exit_is_the_error_of_its_row(code: str, options: dict[str, Any]) -> None:
    function = Function("f", parameters=X, returns=INT, code=code, file="a.sql", **options)
    (first, second) = evaluated(function, pa.array([1]))[0], evaluated(function, pa.array([2]))[0]
    assert first == (1, None)
    assert second[1] is not None
    assert second[1].startswith('function "f" failed: SystemExit: 3 (a.sql, line ')


def test_an_exit_of_a_generator_is_the_error_of_its_row() -> None:
    returns = pa.struct([("n", INT)])
    code = "def f(x):\n  yield x\n  raise SystemExit"
    function = Function("f", "table", X, returns, code=code, entry="f", file="a.sql")
    message = 'function "f" failed: SystemExit (a.sql, line 3)'
    assert evaluated(function, pa.array([1, 2])) == [(None, message)] * 2


def test_an_exit_of_a_module_is_an_error_of_its_function() -> None:
    code = "raise SystemExit(3)\ndef f(x): return x"
    function = Function("f", parameters=X, returns=INT, code=code, entry="f", file="a.sql")
    with pytest.raises(Exception, match='function "f" cannot be loaded: SystemExit: 3'):
        evaluated(function, pa.array([1]))
