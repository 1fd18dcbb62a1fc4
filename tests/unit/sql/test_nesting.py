"""The limit of subqueries within each other, in scripts and in YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.core.errors import PenstockError, flatten_errors
from penstock.sql.dialect.translate import translate
from penstock.sql.text.edits import DialectError
from penstock.sql.text.nesting import MAX_NESTING, check_nesting

TABLE = "CREATE TABLE k (t STRING) WITH (connector='files', path='in.json', format='json');\n"


def nested(count: int) -> str:
    return "SELECT * FROM (" * count + "SELECT * FROM k" + ")" * count


def test_the_limit_is_that_of_nested_subqueries() -> None:
    check_nesting(nested(MAX_NESTING))
    check_nesting(" UNION ALL ".join(f"({nested(9)})" for _ in range(50)))
    check_nesting("SELECT " + "(" * 500 + "1" + ")" * 500)
    check_nesting("SELECT 'a")
    with pytest.raises(DialectError) as caught:
        check_nesting(nested(MAX_NESTING + 1))
    assert caught.value.start == MAX_NESTING * len("SELECT * FROM (") + len("SELECT * FROM ")


@pytest.mark.quick(1)
@pytest.mark.parametrize("start", ["", "CREATE VIEW v AS ", "INSERT INTO out "])
def test_a_query_at_the_limit_of_a_script_is_valid(tmp_path: Path, start: str) -> None:
    sink = TABLE.replace(" k ", " out ")
    script = tmp_path / "s.sql"
    script.write_text(f"{TABLE}{sink}{start}{nested(MAX_NESTING)};\nSELECT t FROM k;\n")
    app.plan(script)


@pytest.mark.quick(2)
@pytest.mark.parametrize("count", [MAX_NESTING + 1, 300, 3000])
@pytest.mark.parametrize("start", ["", "CREATE VIEW v AS ", "INSERT INTO k "])
def test_a_deeper_query_of_a_script_is_an_error(tmp_path: Path, count: int, start: str) -> None:
    (tmp_path / "s.sql").write_text(f"{TABLE}{start}{nested(count)};\nSELECT t FROM k;\n")
    error = only_error(tmp_path / "s.sql")
    assert error.code == "too-deep"
    assert error.where is not None and error.where.line == 2


@pytest.mark.quick(1)
@pytest.mark.parametrize("count", [MAX_NESTING + 1, 300, 3000])
def test_a_deeper_query_of_yaml_is_an_error(tmp_path: Path, count: int) -> None:
    (tmp_path / "p.yaml").write_text(f"""\
sources: {{k: {{type: files, path: in.json, schema: t STRING}}}}
transforms:
  n:
    type: sql
    sql: {nested(count)}
sinks: {{out: {{type: print, from: n}}}}
""")
    error = only_error(tmp_path / "p.yaml")
    assert error.code == "too-deep"
    assert error.where is not None and error.where.line == 5


def only_error(path: Path) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        app.plan(path)
    (error,) = flatten_errors(caught.value)
    return error


def test_computed_keys_of_json_grow_in_proportion() -> None:
    short, long = (len(translate(f"json_get_str(b{', k' * n})").text) for n in (5, 40))
    assert long < 10 * short


@pytest.mark.slow
@pytest.mark.quick(1)
@pytest.mark.parametrize("call", ["lcm({}, b)", "array_slice(a, {}, 2)", "array_cat({}, c)"])
def test_nested_calls_of_a_repeated_argument_are_limited(call: str) -> None:
    text = "x"
    for _ in range(30):
        text = call.format(text)
    with pytest.raises(DialectError) as caught:
        translate(f"SELECT 1, {text} FROM t")
    assert caught.value.code == "too-deep"
    assert caught.value.start >= len("SELECT 1, ")
