"""Queries of scripts of dialects that are built on DataFusion have DataFusion's answers.

PENSTOCK_UPDATE_GOLDEN=1 writes the answers of both. Generated expressions are compared without
stored answers.
"""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING

import datafusion
import pyarrow as pa
import pytest
from function_engines import is_error, message, show
from query_answers import ANSWERS, QueryAnswers, read_queries, read_query_answers, read_tables

from penstock.engine.functions.register import register_functions
from penstock.plan.functions import builtin_functions
from penstock.sql.datafusion.meaning.queries import translate_query
from penstock.sql.datafusion.meaning.settings import Settings
from penstock.sql.dialect.translate import translate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SEED, _COUNT = 11, 220


def written(table: pa.Table) -> str:
    columns = [[show(value) for value in column.to_pylist()] for column in table.columns]
    rows = "; ".join(", ".join(row) for row in zip(*columns, strict=True))
    return f"{', '.join(table.column_names)}: {rows}"


def datafusion_context() -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    for name, query in read_tables().items():
        context.sql(f"CREATE TABLE {name} AS {query}").collect()
    return context


def ask_datafusion(context: datafusion.SessionContext, query: str) -> str:
    return written(context.sql(query).to_arrow_table())


@pytest.fixture(scope="module")
def tables(penstock_spark: SparkSession) -> SparkSession:
    session = penstock_spark.newSession()
    for name, query in read_tables().items():
        session.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {translate(query).text}")
    return session


def ask_spark(session: SparkSession, query: str) -> str:
    try:
        register_functions([*builtin_functions(query)], session)
        return written(session.sql(translate(query).text).toArrow())
    except Exception as error:
        if not is_error(error):
            raise
        return f"error: {message(error)}"


def ask_dialect(session: SparkSession, query: str) -> str:
    return ask_spark(session, translate_query(query).text)


@pytest.mark.spark
def test_queries(tables: SparkSession) -> None:
    context = datafusion_context()
    answers = [
        QueryAnswers(
            rule, query, ask_datafusion(context, query),
            ask_spark(tables, query) if os.environ.get("PENSTOCK_UPDATE_GOLDEN") else "",
            ask_dialect(tables, query),
        )
        for rule, query in read_queries().items()
    ]  # fmt: skip
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        lines = [json.dumps(vars(each), ensure_ascii=False) for each in answers]
        ANSWERS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    stored = {each.rule: each for each in read_query_answers()}
    assert {*stored} == {*read_queries()}
    for answer in answers:
        assert answer.dialect == answer.datafusion, answer.rule
        assert answer.datafusion == stored[answer.rule].datafusion, answer.rule


class Expressions:
    """Random expressions over the columns of `t`, by type."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def any(self) -> str:
        return self._of(self._random.choice(["number", "double", "text", "truth"]), 3)

    def _of(self, kind: str, depth: int) -> str:
        forms = _LEAVES[kind] if depth == 0 else _FORMS[kind]
        form = self._random.choice(forms)
        for name in ("number", "double", "text", "truth"):
            while f"<{name}>" in form:
                form = form.replace(f"<{name}>", self._of(name, max(depth - 1, 0)), 1)
        return form


_LEAVES = {
    "number": ["id", "a", "b", "1", "3", "NULL::BIGINT", "xs[1]", "xs[-1]", "xs[3]"],
    "double": ["x", "1.5", "0.25", "x::DOUBLE"],
    "text": ["s", "'ab'", "'Xy z'", "''", "ys[1]", "ys[2]"],
    "truth": ["a > 2", "s IS NULL", "b = 2", "true"],
}
_FORMS = {
    "number": [
        "<number> + <number>", "<number> - <number>", "(<number>) * 2", "(<number>) / 3",
        "(<number>) % 4", "-(<number>)", "abs(<number>)",
        "CAST(array_length(xs) AS BIGINT)",
        "coalesce(<number>, 9)",
        "CASE WHEN <truth> THEN <number> ELSE <number> END", "strpos(<text>, 'b')",
        "CAST(cardinality(xs) AS BIGINT)", "CAST(array_position(xs, <number>) AS BIGINT)",
        "nullif(<number>, 1)",
        "(<double>)::BIGINT", "character_length(<text>)", "ascii(<text>)",
        "regexp_count(<text>, '[a-z]')",
    ],
    "double": [
        "<double> + <number>", "(<double>) * <double>", "(<double>) / 0.0", "(<number>) / 2.0",
        "sqrt(abs(<double>))", "round(<double>)", "floor(<double>)", "ceil(<double>)",
        "coalesce(<double>, 0.5)", "power(<double>, 2)",
    ],
    "text": [
        "<text> || <text>", "concat(<text>, <text>, 'k')", "upper(<text>)", "lower(<text>)",
        "left(<text>, -1)", "right(<text>, 2)", "substr(<text>, -1, 4)", "reverse(<text>)",
        "regexp_replace(<text>, '[a-z]', '<-')", "initcap(<text>)", "coalesce(<text>, 'n')",
        "split_part(<text>, 'y', 1)", "replace(<text>, 'a', 'zz')", "repeat(<text>, 2)",
        "array_to_string(ys, '-')", "CASE WHEN <truth> THEN <text> END", "trim(<text>)",
        "lpad(<text>, 4, '*')", "(<number>)::TEXT", "translate(<text>, 'ab', 'x')",
        "concat_ws('-', <text>, <text>)", "md5(<text>)", "ltrim(<text>, 'X')",
    ],
    "truth": [
        "NOT (<truth>)", "(<truth>) AND (<truth>)", "(<truth>) OR (<truth>)", "<number> > <number>",
        "<text> LIKE '%b%'", "<text> = <text>", "<number> IN (1, 2, NULL)",
        "array_has(xs, <number>)", "<number> BETWEEN 1 AND 3", "<text> ~ '^[A-Z]'",
        "starts_with(<text>, 'a')",
        "<number> = ANY (xs)", "(<truth>) IS NOT TRUE", "<text> IS DISTINCT FROM 'ab'",
        "isnan(<double>)",
    ],
}  # fmt: skip


@pytest.mark.spark
def test_generated_expressions(tables: SparkSession) -> None:
    """One query of many columns has DataFusion's answers, with its names of columns.

    A function by its other name, as `length`, writes its arguments in another form.
    """
    context, source = datafusion_context(), Expressions(_SEED)
    chosen: dict[str, str] = {}
    while len(chosen) < _COUNT:
        text = source.any()
        try:
            (name,) = context.sql(f"SELECT {text} FROM t").schema().names
            context.sql(f"SELECT {text} FROM t").to_arrow_table()
        except Exception:
            continue
        if not any(name.lower() == known.lower() for known in chosen):
            chosen[name] = text
    columns = ", ".join(chosen.values())
    query = f"SELECT {columns} FROM (SELECT * FROM t ORDER BY id) AS t"
    expected = context.sql(query).to_arrow_table()
    translated = translate_query(query).text
    register_functions([*builtin_functions(translated)], tables)
    found = tables.sql(translate(translated).text).toArrow()
    wrong = [
        (text, [*map(show, ours.to_pylist())], [*map(show, theirs.to_pylist())])
        for text, ours, theirs in zip(chosen.values(), found.columns, expected.columns, strict=True)
        if [*map(show, ours.to_pylist())] != [*map(show, theirs.to_pylist())]
    ]
    assert wrong == []
    assert found.column_names == [*chosen]


@pytest.mark.spark
def test_a_setting_replaces_all_matches_by_texts(tables: SparkSession) -> None:
    query = (
        "SELECT regexp_replace('a1b2', '[0-9]', '$1') AS a, "
        "regexp_replace('a1b', '[0-9]', s) AS b FROM t"
    )
    translated = translate_query(query, settings=Settings(replaces_all=True)).text
    assert ask_spark(tables, translated) == "a, b: a$1b$1, aAnnb; a$1b$1, abobb; a$1b$1, NULL"
