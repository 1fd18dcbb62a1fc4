"""Values in runs of scripts: arguments by name, nulls in NOT NULL columns, constant errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

HEAD = """\
CREATE FUNCTION minus(x BIGINT, y BIGINT) RETURNS BIGINT RETURN x - y;
CREATE FUNCTION py_minus(x BIGINT, y BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$ return x - y $$;
CREATE FUNCTION odd(x BIGINT) RETURNS BIGINT LANGUAGE PYTHON AS $$ return x if x % 2 else None $$;
CREATE MACRO shout(x) AS x::TEXT || '!';
CREATE TABLE t (id BIGINT) WITH (connector = 'files', path = 'in.json', format = 'json');
"""


@pytest.fixture
def run(cli: Any, tmp_path: Path) -> Any:
    (tmp_path / "in.json").write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n')

    def run(query: str) -> Any:
        (tmp_path / "s.sql").write_text(HEAD + query)
        return cli(tmp_path, "run", "s.sql", "--quiet")

    return run


def test_arguments_by_name(run: Any) -> None:
    done = run(
        "SELECT minus(y => id, x => 10) AS a, py_minus(y => id, x => 10) AS b, shout(id) AS c "
        "FROM t WHERE id = 3;"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0]) == {"a": 7, "b": 7, "c": "3!"}


def test_nulls_in_columns_that_are_not_null(run: Any, cli: Any, tmp_path: Path) -> None:
    run(
        'CREATE TABLE o (id BIGINT NOT NULL, "it\'s" TEXT NOT NULL)\n'
        "WITH (connector = 'files', path = 'out', format = 'json');\n"
        "INSERT INTO o SELECT odd(id), if(id = 3, NULL, 'x') FROM t;"
    )
    (file,) = (tmp_path / "out").glob("*.json*")
    assert file.read_text().splitlines() == ['{"id":1,"it\'s":"x"}']
    output = cli(tmp_path, "dead", "list", "s.sql").stdout
    assert "missing-value  2" in output
    assert 'column "id" is null; expected a value' in output
    assert 'column "it\'s" is null; expected a value' in output


def test_a_constant_that_fails_is_located(run: Any) -> None:
    done = run("SELECT id, 7 / 0 AS a FROM t;")
    assert done.returncode != 0
    assert "error[divide-by-zero]" in done.stderr
    assert "--> s.sql:6:12" in done.stderr
