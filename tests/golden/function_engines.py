"""Answers of Penstock and DataFusion to samples of functions, as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import datafusion
import pyarrow as pa
from function_samples import Answers, Family, read_rows
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.engine.functions.register import register_functions
from penstock.plan.functions import builtin_functions
from penstock.spec.dialects.arroyo.queries import translate_query
from penstock.sql.dialect.translate import translate
from penstock.sql.text.edits import DialectError

_DIGITS = 12
_OF_DATAFUSION = re.compile(
    "DataFusion error|SQL error|Error during planning|Schema error|Arrow error|Execution error"
    "|This feature"
)
_NOISE = re.compile(r"^\[[A-Z_.0-9]+\] ?|\.? SQLSTATE: .*", re.DOTALL)


def routines() -> set[str]:
    """Returns the names of DataFusion's functions."""
    settings = datafusion.SessionConfig().with_information_schema(True)
    found = datafusion.SessionContext(settings).sql(
        "SELECT DISTINCT routine_name FROM information_schema.routines"
    )
    return set(found.to_pydict()["routine_name"])


def query(family: Family, expressions: Sequence[str]) -> str:
    """Returns a query with a column for each expression."""
    selected = ", ".join(f"{text} AS c{number}" for number, text in enumerate(expressions))
    if family.name not in ("aggregates", "windows"):
        return f"SELECT {selected}"
    columns, rows = read_rows()
    values = ", ".join(f"({row})" for row in rows)
    order = " ORDER BY t.id" if family.name == "windows" else ""
    return f"SELECT {selected} FROM (VALUES {values}) AS t({', '.join(columns)}){order}"


def ask_penstock(
    spark: SparkSession, family: Family, texts: Sequence[str], *, arroyo: bool = False
) -> list[str]:
    """Returns the answers of Spark to the translated samples, with `arroyo` in scripts of Arroyo.

    An aggregate of distinct values has a query of its own: Spark cannot compute it beside an
    ordered `string_agg`. The other samples are one query.
    """
    alone = [[text] for text in texts if "(DISTINCT " in text]
    together = [text for text in texts if "(DISTINCT " not in text]
    found: dict[str, str] = {}
    for part in [*alone, together]:
        if part:
            text = query(family, part)
            if arroyo:
                text = translate_query(text).text
            register_functions([*builtin_functions(text)], spark)
            table = spark.sql(translate(text).text).toArrow()
            found |= dict(zip(part, _answers(table), strict=True))
    return [found[text] for text in texts]


def ask_datafusion(family: Family, texts: Sequence[str]) -> list[str]:
    """Returns the answers of DataFusion, in one query.

    An aggregate has a query of its own: another one in the query changes the order of its rows.
    """
    parts = [[text] for text in texts] if family.name == "aggregates" else [texts]
    context = datafusion.SessionContext()
    tables = [context.sql(query(family, part)).to_arrow_table() for part in parts]
    return [answer for table in tables for answer in _answers(table)]


def ask_both(spark: SparkSession, family: Family, texts: Sequence[str]) -> dict[str, Answers]:
    """Returns the answers to samples, and Penstock's errors."""
    others: dict[str, str | Exception | None] = dict.fromkeys(texts)
    if family.in_datafusion:
        others |= _divide(lambda part: ask_datafusion(family, part), texts, is_datafusion_error)
    found = _divide(lambda part: ask_penstock(spark, family, part), texts, is_error)
    special = [text for text in texts if has_meaning_of_arroyo(text)]
    there = _divide(lambda part: ask_penstock(spark, family, part, arroyo=True), special, is_error)
    return {text: _pair(found[text], others[text], there.get(text)) for text in texts}


def has_meaning_of_arroyo(text: str) -> bool:
    """Returns whether a sample is another expression in scripts of Arroyo."""
    return translate_query(text).text != text


def _pair(
    answer: str | Exception, other: str | Exception | None, there: str | Exception | None
) -> Answers:
    stored = other if isinstance(other, str) else None
    special = there if isinstance(there, str) and there != answer else None
    if isinstance(answer, Exception):
        return Answers(None, stored, message(answer), special)
    return Answers(answer, stored, None, special)


def _divide(
    ask: Callable[[Sequence[str]], list[str]],
    texts: Sequence[str],
    expected: Callable[[Exception], bool],
) -> dict[str, str | Exception]:
    """Returns answers by sample. Samples are divided until those with an error are alone."""
    if not texts:
        return {}
    try:
        return dict(zip(texts, ask(texts), strict=True))
    except Exception as error:
        if not expected(error):
            raise
        if len(texts) == 1:
            return {texts[0]: error}
    middle = len(texts) // 2
    return _divide(ask, texts[:middle], expected) | _divide(ask, texts[middle:], expected)


def is_error(error: Exception) -> bool:
    """Returns whether Penstock or Spark found an error in a sample."""
    return isinstance(error, DialectError | PySparkException | Py4JJavaError)


def is_datafusion_error(error: Exception) -> bool:
    """Returns whether an error is one of DataFusion."""
    return _OF_DATAFUSION.match(str(error)) is not None


def message(error: Exception) -> str:
    """Returns the message of an error, with the hint of Penstock."""
    if isinstance(error, DialectError):
        return f"{error.message}: {error.hint}"
    return _NOISE.sub("", str(error).splitlines()[0])


def _answers(table: pa.Table) -> list[str]:
    columns = [column.to_pylist() for column in table.columns]
    return [show(values[0] if len(values) == 1 else values) for values in columns]


def show(value: Any) -> str:
    """Returns a value as text. Numbers of equal value are the same text, whatever their type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ")
    if isinstance(value, date | time | timedelta):
        return str(value)
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {show(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(show(each) for each in value) + "]"
    if isinstance(value, tuple):
        return ": ".join(show(each) for each in value)
    return str(value)


def _number(value: int | float | Decimal) -> str:
    if isinstance(value, int) or (math.isfinite(value) and value == int(value)):
        return str(int(value))
    return f"{float(value):.{_DIGITS}g}"
