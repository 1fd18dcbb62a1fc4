"""Errors of rows from the classes and messages of Spark's exceptions."""

from __future__ import annotations

import pytest

from penstock.engine.row_checks.data_errors import parse_data_error

SPARK = "org.apache.spark.SparkRuntimeException: "


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (
            "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'x' cannot"
            " be cast. Correct the value as per the syntax. SQLSTATE: 22018\n== SQL (line 1) ==\nx",
            "cast-invalid-input",
            "The value 'x' cannot be cast.",
        ),
        (
            SPARK + "[USER_RAISED_EXCEPTION] Please send\na number. Use 1. SQLSTATE: P0001",
            "user-raised-exception",
            "Please send a number. Use 1.",
        ),
        (SPARK + "[USER_RAISED_EXCEPTION]  SQLSTATE: P0001", "user-raised-exception", "no message"),
        (
            SPARK + '[USER_RAISED_EXCEPTION] function "f" failed: KeyError: 1 SQLSTATE: P0001',
            "function-failed",
            'function "f" failed: KeyError: 1',
        ),
        (
            SPARK + '[USER_RAISED_EXCEPTION] column "a" is null; expected a value SQLSTATE: P0001',
            "missing-value",
            'column "a" is null; expected a value',
        ),
        (
            "java.util.regex.PatternSyntaxException: Unclosed [A] group near index 1\n(",
            "sql-failed",
            "PatternSyntaxException: Unclosed [A] group near index 1 (",
        ),
        (
            "org.apache.spark.SparkIllegalArgumentException: requirement failed: Illegal step",
            "sql-failed",
            "Illegal step",
        ),
        ("java.lang.StackOverflowError: null", "sql-failed", "StackOverflowError: no message"),
    ],
)
def test_code_and_message(text: str, code: str, message: str) -> None:
    error = parse_data_error(text)
    assert (error.code, error.message) == (code, message)
