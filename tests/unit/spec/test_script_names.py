"""Double quotes enclose names in all statements of a script; in YAML they are Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import SpecError
from penstock.spec.documents.reading import load
from penstock.sql.dialect.translate import translate

PENSTOCK = "connector = 'files', path = 'x', format = 'json'"
ARROYO = "connector = 'single_file', path = 'x', format = 'json'"


def read(directory: Path, script: str) -> Any:
    path = directory / "s.sql"
    path.write_text(script)
    return load([path], env={}).root.data()


@pytest.mark.parametrize("options", [PENSTOCK, ARROYO])
def test_names_of_queries(tmp_path: Path, options: str) -> None:
    data = read(
        tmp_path,
        f'CREATE TABLE users ("user id" BIGINT, country TEXT) WITH ({options});\n'
        'CREATE VIEW "the view" AS SELECT "user id", count(*) AS "n" FROM users\n'
        'WHERE "user id" > 5 AND country = \'a "text"\' GROUP BY "user id";\n'
        'SELECT "user id" + 1 AS n FROM "the view";',
    )
    assert data["sources"]["users"]["schema"] == {"user id": "BIGINT", "country": "STRING"}
    assert data["transforms"]["the view"]["sql"] == (
        "SELECT `user id`, count(*) AS `n` FROM users\n"
        "WHERE `user id` > 5 AND country = 'a \"text\"' GROUP BY `user id`"
    )
    assert data["transforms"]["result_query"]["sql"] == "SELECT `user id` + 1 AS n FROM `the view`"


def test_names_of_tables_and_functions(tmp_path: Path) -> None:
    data = read(
        tmp_path,
        'CREATE TABLE t ("end" TIMESTAMP, s STRUCT<"a b" INT>, "next" INT GENERATED ALWAYS AS '
        f'(s."a b" + 1), WATERMARK FOR "end" AS date_trunc(\'day\', "end")) WITH ({PENSTOCK});\n'
        'CREATE MACRO twice("a b") AS "a b" * 2;\n'
        'SELECT twice("next") FROM t;',
    )
    assert data["sources"]["t_source"]["schema"]["s"] == "STRUCT<`a b` INT>"
    assert data["transforms"]["t_generated"]["set"] == {"next": "s.`a b` + 1"}
    assert data["transforms"]["t"]["watermark"]["bound"] == "date_trunc('day', `end`)"
    assert data["functions"]["twice"] == {"args": {"a b": None}, "sql": "`a b` * 2"}


def test_quote_in_a_name(tmp_path: Path) -> None:
    data = read(
        tmp_path, f'CREATE TABLE t ("a""b" INT) WITH ({PENSTOCK});\nSELECT "a""b" AS n FROM t;'
    )
    assert data["sources"]["t"]["schema"] == {'a"b': "INT"}
    assert data["transforms"]["result_query"]["sql"] == 'SELECT `a"b`  AS n FROM t'


def test_quote_in_an_option(tmp_path: Path) -> None:
    data = read(
        tmp_path,
        "CREATE TABLE t (a INT) WITH (connector = 'files', path = 'it''s.json', format = 'json');\n"
        "SELECT a FROM t;",
    )
    assert data["sources"]["t"]["path"] == "it's.json"


def test_suffix_of_a_number_in_an_option(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="found 10s"):
        read(tmp_path, "CREATE TABLE t (a INT) WITH (connector = 'files', poll = 10s);")


def test_text_of_yaml() -> None:
    assert translate("SELECT \"x\" || 'y'").text == "SELECT \"x\" || 'y'"
