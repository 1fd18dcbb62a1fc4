"""The failures of all functions of SQL are errors of their rows, whatever exception Spark raises.

The arguments of the samples of functions are replaced by values that they do not accept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.core.errors import RecordError
from penstock.engine.catalyst.executed_plan import compute
from penstock.engine.functions.register import register_functions
from penstock.engine.row_checks.data_errors import SPARK_ERRORS, data_error
from penstock.engine.row_checks.row_checks import ROW, find_checks
from penstock.plan.functions import builtin_functions
from penstock.sql.dialect.translate import translate
from penstock.sql.text.edits import DialectError

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
from function_samples import FAMILIES, read_family

pytestmark = pytest.mark.spark

ROW_FAMILIES = [name for name in FAMILIES if name not in ("aggregates", "windows")]
TEXTS = ["(", "x", "%", "", "-1", "{", "2024-13-45", "9" * 40, "é"]
NUMBERS = [0, -1, 99]
LITERALS = re.compile(r"'(?P<text>(?:[^'\\]|\\.|'')*)'|(?<![\w.])-?\d+(?![\w.])")
OTHERS = [
    "raise_error(s)", "assert_true(i > 9, s)", "assert_true(i > 9)", "map(s, 1, s, 2)",
    "str_to_map(concat(s, ',', s))", "split('a', s)", "'a' RLIKE s",
    "format_string(concat('%', s), i)",
    "xpath(concat('<', s), 'a')", "from_json(concat('{', s), 'a INT', map('mode', 'FAILFAST'))",
    "sequence(1, 5, i - i)", "to_number(s, '999')", "parse_json(concat('{', s))",
    "make_interval(i, i, i)",
    "map_from_arrays(array(s, s), array(1, 2))", "url_decode('%' || s)",
    "'a' LIKE concat(s, chr(92))",
    "elt(i, 'a')", "next_day(DATE '2024-01-01', s)", "aes_decrypt(unhex('00'), s)",
]  # fmt: skip


def expressions(family: str) -> Iterator[str]:
    """Yields the first samples of functions with a column in place of a literal of each kind."""
    for sample in read_family(family).samples:
        text = next(iter(sample.texts.values()))
        found = {literal["text"] is None: literal for literal in LITERALS.finditer(text)}
        for is_number, literal in found.items():
            column = "i" if is_number else "s"
            yield text[: literal.start()] + column + text[literal.end() :]


def value_error(frame: DataFrame) -> RecordError | None:
    """Returns the error of a row that fails a job. Raises other errors."""
    try:
        compute(frame)
    except SPARK_ERRORS as error:
        found = data_error(error)
        if found is None:
            raise
        return found
    return None


@pytest.mark.parametrize("family", ["others", *ROW_FAMILIES])
def test_each_failure_is_an_error_of_its_row(penstock_spark: SparkSession, family: str) -> None:
    values = [(text, number) for number in NUMBERS for text in TEXTS]
    texts, numbers = zip(*values, strict=True)
    columns = {"s": pa.array(texts), "i": pa.array(numbers, pa.int32()), ROW: range(len(values))}
    numbered = penstock_spark.createDataFrame(pa.table(columns))  # checked without a job
    rows, stored = numbered.drop(ROW), numbered.drop(ROW).repartition(1).localCheckpoint()
    codes: set[tuple[str, str]] = set()
    valid: list[str] = []
    for expression in OTHERS if family == "others" else expressions(family):
        try:
            register_functions([*builtin_functions(f"SELECT {expression}")], penstock_spark)
            text = translate(f"to_json(struct({expression} AS x)) AS x").text
            frame = rows.selectExpr(text)
        except (DialectError, PySparkException):
            continue
        errors = [
            error
            for check in find_checks(frame, rows, numbered)
            for _, error in check.errors(0, len(values))
        ]
        valid += [] if errors else [text]
        assert all(error.code and error.message for error in errors), expression
        kinds = {(expression.partition("(")[0], error.code) for error in errors}
        if not kinds <= codes:
            assert value_error(stored.selectExpr(text)) is not None, expression
        codes |= kinds
    compute(stored.selectExpr(*valid))
    assert codes or family != "others"
