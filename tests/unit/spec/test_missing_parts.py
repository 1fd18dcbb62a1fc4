"""Errors of independent parts beside a file or a statement that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import app
from penstock.core.errors import flatten_errors

Errors = Callable[..., list[str]]
CLICKS = "CREATE TABLE clicks (id BIGINT) WITH (connector = 'generate', rows = 3, nope = 1);\n"


@pytest.fixture
def errors(tmp_path: Path) -> Errors:
    """Writes files; returns the errors of a pipeline, each as `file:line code`."""

    def check(files: dict[str, str], *names: str, overrides: tuple[str, ...] = ()) -> list[str]:
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        paths = [tmp_path / name for name in names or [next(iter(files))]]
        _, found = app.partial_plan(paths, overrides=overrides, env={})
        places = [(error.where, error.code) for error in found]
        assert len({*places}) == len(places)
        return sorted(
            f"{Path(where.file).name}:{where.line} {code}" for where, code in places if where
        )

    return check


MAIN = """\
include: [part.yaml, part.sql]
sources:
  clicks: {type: generate, row: 3, fields: {id: sequence}}
  orders: {type: kafka, connection: main, topic: orders}
transforms:
  big: {type: sql, sql: SELECT * FROM elsewhere}
sinks:
  out: {type: prin, from: anywhere}
tests:
  - name: unknown
    given: {other: []}
    expect: {another: []}
"""
OWN = ["x.yaml:3 unknown-option", "x.yaml:8 unknown-type"]
PART = "transforms:\n  elsewhere: {type: filter, from: clicks}\n"
SCRIPT = "CREATE VIEW anywhere AS SELECT id FROM clicks;\n"


@pytest.mark.parametrize(
    ("part", "error"),
    [
        (None, "x.yaml:1 missing-file"),
        ("sources: [1\n", "part.yaml:1 invalid-yaml"),
        ("- 1\n", "part.yaml:1 not-a-map"),
        ("\x01", "part.yaml:1 invalid-yaml"),
        ("include: gone.yaml\n", "part.yaml:1 missing-file"),
        ("include: 'gone*.yaml'\n", "part.yaml:1 missing-file"),
        ("include: ${GONE}\n", "part.yaml:1 unset-variable"),
        ("include: [{a: 1}]\n", "part.yaml:1 wrong-type"),
    ],
)
def test_an_include_that_cannot_be_read_hides_nothing(
    errors: Errors, part: str | None, error: str
) -> None:
    files = {"x.yaml": MAIN, "part.sql": SCRIPT, **({"part.yaml": part} if part else {})}
    assert errors(files) == sorted([error, *OWN])
    assert errors(files, overrides=("sinks.gone.path=x",)) == sorted([error, *OWN])


def test_errors_of_several_includes(errors: Errors) -> None:
    files = {"x.yaml": MAIN, "part.yaml": PART, "part.sql": "CREATE VIEW AS SELECT 1;\nSET a = ;"}
    part = ["part.sql:1 invalid-sql", "part.sql:2 invalid-sql", "part.yaml:2 missing-option"]
    assert errors(files) == sorted([*part, *OWN])


def test_names_of_statements_with_errors_are_known(errors: Errors) -> None:
    script = (
        "CREATE VIEW v SELECT 1;\nCREATE TABLE t (a) WITH (connector = 'files');\n"
        "CREATE VIEW w AS SELECT * FROM v JOIN t JOIN u;\nINSERT INTO t SELECT * FROM V;\n"
        "INSERT INTO s SELECT 1;\n"
    )
    assert errors({"x.sql": script}) == [
        "x.sql:1 invalid-sql", "x.sql:2 invalid-sql", "x.sql:3 unknown-node",
        "x.sql:5 unknown-table",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("broken", "code", "hidden"),
    [
        ("CREATE VIEW AS SELECT 1", "invalid-sql", True),
        ("CRATE VIEW v AS SELECT 1", "unknown-statement", True),
        ("SET x = ", "invalid-sql", False),
        ("SET x.y = 1", "unknown-setting", False),
        ("INSERT INTO out SELECT", None, False),
        ("CREATE VIEW v SELECT ';'", "invalid-sql", False),
        ("SELECT 'a", "invalid-sql", False),
    ],
)
def test_a_statement_with_an_error_hides_no_other(
    errors: Errors, broken: str, code: str | None, hidden: bool
) -> None:
    script = f"{CLICKS}CREATE VIEW w AS SELECT * FROM gone;\n{broken};\nSELECT * FROM clicks;\n"
    found = errors({"x.sql": script})
    known = ["x.sql:1 unknown-option"] + ([] if hidden else ["x.sql:2 unknown-node"])
    assert [each for each in found if ":3" not in each] == known
    if code is not None:
        assert f"x.sql:3 {code}" in found


def test_tables_that_a_statement_with_an_error_writes(errors: Errors) -> None:
    script = (
        "CREATE TABLE kept (id BIGINT);\nINSERT INTO kept (a SELECT 1;\n"
        "CREATE TABLE out (id BIGINT) WITH (connector = 'print');\nINSERT INTO out (a SELECT 1;\n"
        "CREATE VIEW v AS SELECT * FROM kept;\nCREATE TABLE other (id BIGINT);\n"
        "CREATE VIEW w AS SELECT * FROM other;\n"
    )
    assert errors({"x.sql": script}) == [
        "x.sql:2 invalid-sql", "x.sql:4 invalid-sql", "x.sql:6 unwritten-table",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("CREATE VIEW v AS\nSELECT 'a;", 3),
        ("CREATE VIEW v AS\nSELECT `a;", 3),
        ("CREATE VIEW v AS\nSELECT a /* b;", 3),
        ("CREATE VIEW v AS\nSELECT $$a;", 3),
        ("CREATE VIEW v AS SELECT\n'a' AS b, 'c\nAS d, 'e';", 3),
        ("CREATE VIEW v AS SELECT\n'a;\nCREATE VIEW w AS SELECT 'b;", 3),
        ("CREATE VIEW v AS SELECT\n'a\n-- it''s\nFROM b;", 3),
    ],
)
def test_an_open_quote_hides_no_other_statement(errors: Errors, statement: str, line: int) -> None:
    after = "INSERT INTO out SELECT 'it' FROM gone JOIN v;\nSET x.y = 1;\n"
    found = errors({"x.sql": f"{CLICKS}{statement}\n-- Not read.\n{after}"})
    last = 1 + statement.count("\n") + 3
    assert f"x.sql:{line} invalid-sql" in found
    assert {"x.sql:1 unknown-option", f"x.sql:{last + 1} unknown-setting"} <= {*found}
    assert f"x.sql:{last} unknown-table" in found


def test_a_script_of_open_quotes_is_read_in_parts() -> None:
    _, found = app.script_plan("SELECT 'a;\nCREATE VIEW v AS SELECT 'b;\nSELECT 'c;")
    lines = [each.where.line for error in found for each in flatten_errors(error) if each.where]
    assert lines == [1, 2, 3]


def test_a_text_of_several_lines_is_no_open_quote(errors: Errors) -> None:
    text = "'first;\n  second'"
    script = f"CREATE VIEW v AS SELECT {text} AS a FROM clicks;\n{CLICKS}SELECT\n'b FROM v;\n"
    assert errors({"x.sql": script}) == ["x.sql:3 unknown-option", "x.sql:5 invalid-sql"]


BROKEN_ENTRY = """\
sources:
  clicks: {type: generate, row: 3, fields: {id: sequence}}
transforms:
  first:
    type: sql
    sql: "SELECT id
      FROM clicks
    from: clicks
  second: {type: filte, from: first}
sinks:
  "out": {type: print, "limt": 3, from: gone}
  b: {type: print, from: [clicks}
  c: {type: prin, from: second}
tests:
  - name: "a
    given: {clicks: []}
  - name: b
    given: {"other": []}
    expect: {b: [], "another": []}
"""


def test_syntax_errors_hide_no_other_entries(errors: Errors) -> None:
    assert errors({"x.yaml": BROKEN_ENTRY}) == [
        "x.yaml:11 unknown-input", "x.yaml:11 unknown-option", "x.yaml:12 invalid-yaml",
        "x.yaml:13 unknown-type", "x.yaml:15 invalid-yaml", "x.yaml:18 unknown-node",
        "x.yaml:19 unknown-node", "x.yaml:2 unknown-option", "x.yaml:6 invalid-yaml",
        "x.yaml:9 unknown-type",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["a: {type: x\n", "<<<<<<< HEAD\n", '{"a": [1}\n'])
def test_syntax_errors_of_a_whole_file(errors: Errors, text: str) -> None:
    found = errors({"x.yaml": f"{text}sources:\n  b: {{type: x}}\n"})
    assert found[0] == "x.yaml:1 invalid-yaml"


def test_pipeline_and_test_file_are_independent(errors: Errors) -> None:
    pipeline = (
        "sources:\n  clicks: {type: generate, row: 3}\nsinks:\n  out: {type: prin, from: x}\n"
    )
    tests = "tests:\n  - name: a\n    given: {clicks: []}\n    expects: {out: []}\n"
    broken = {"x.yaml": pipeline, "x.test.yaml": "tests: [1\n"}
    own = ["x.yaml:2 unknown-option", "x.yaml:4 unknown-type"]
    assert errors(broken, *broken) == ["x.test.yaml:1 invalid-yaml", *own]
    broken = {"x.yaml": "sources: [1\n", "x.test.yaml": tests}
    assert errors(broken, *broken) == ["x.test.yaml:4 unknown-option", "x.yaml:1 invalid-yaml"]


def test_files_that_replace_options_are_not_checked_alone(errors: Errors) -> None:
    files = {"x.yaml": "sources: [1\n", "y.yaml": "sources: {a: {topic: b}}\n"}
    assert errors(files, *files) == ["x.yaml:1 invalid-yaml"]


@pytest.mark.parametrize(
    ("overlay", "error"),
    [
        ("sources: [1\n", ["y.yaml:1 invalid-yaml"]),
        ("- 1\n", ["y.yaml:1 not-a-map"]),
        ("include: gone.yaml\n", ["y.yaml:1 missing-file"]),
        (None, []),
    ],
)
def test_an_overlay_that_cannot_be_read_hides_only_errors_that_it_may_correct(
    errors: Errors, overlay: str | None, error: list[str]
) -> None:
    base = (
        "sources:\n  a: {type: generate, row: 3, fields: {id: sequence}}\n  b: {type: kafka}\n"
        "  c: {type: files, path: '${GONE}', schema: id LONGG}\n"
        "transforms:\n  d: {type: sql, sql: SELECT * FROM elsewhere}\n"
        "sinks:\n  e: {type: prin, from: a}\n  f: {type: print, from: other}\n"
        "runtime:\n  stat: x\n"
    )
    files = {"x.yaml": base, **({"y.yaml": overlay} if overlay else {})}
    third = {"z.yaml": "sources:\n  a: {rws: 1}\n  g: {path: x}\n"}
    assert errors({**files, **third}, "x.yaml", "y.yaml", "z.yaml") == [
        "x.yaml:11 unknown-option", "x.yaml:2 unknown-option", "x.yaml:4 unknown-type",
        "x.yaml:8 unknown-type", *error, "z.yaml:2 unknown-option",
    ]  # fmt: skip


def test_a_file_that_cannot_be_read_hides_no_errors_of_its_overlay(errors: Errors) -> None:
    files = {"x.yaml": "- 1\n", "y.yaml": "sources:\n  a: {topic: b}\n  b: {type: fils}\n"}
    assert errors(files, *files) == ["x.yaml:1 not-a-map", "y.yaml:3 unknown-type"]


def test_an_overlay_with_a_syntax_error_hides_no_other_entries(errors: Errors) -> None:
    base = (
        "sources:\n  a: {type: generate, row: 3, fields: {id: sequence}}\n"
        "  b: {type: generate, row: 3}\nsinks:\n  c: {from: a}\n  d: {type: prin, from: a}\n"
    )
    files = {
        "x.yaml": base,
        "y.yaml": 'sources:\n  b:\n    rows: "3\n  a: {rws: 1}\nruntime:\n  stat: x\n',
        "z.yaml": "sinks:\n  c: {limit: [3}\n  d: {limt: 3}\n",
    }
    assert errors(files, *files) == [
        "x.yaml:2 unknown-option", "x.yaml:6 unknown-type", "y.yaml:3 invalid-yaml",
        "y.yaml:4 unknown-option", "y.yaml:6 unknown-option", "z.yaml:2 invalid-yaml",
    ]  # fmt: skip


def test_all_errors_of_columns_and_options(errors: Errors) -> None:
    script = (
        "CREATE TABLE a (\n  b INT,\n  c ARRAY<,\n  d INT NOT,\n  e INT\n) WITH (\n"
        "  connector = 'generate',\n  rows,\n  f = [1\n);\n"
    )
    assert errors({"x.sql": script}) == [
        "x.sql:10 invalid-sql", "x.sql:3 invalid-sql", "x.sql:4 invalid-sql",
        "x.sql:8 invalid-sql",
    ]  # fmt: skip


def test_all_errors_of_a_schema(errors: Errors) -> None:
    schema = [
        "a INT COMMENT,",
        "b DECIMAL(x),",
        "c ARRAY<INT,",
        "d INT NOT,",
        "e ; INT,",
        "f STRNG",
    ]
    lines = "".join(f"      {line}\n" for line in schema)
    pipeline = (
        f"sources:\n  a:\n    type: files\n    path: x\n    format: json\n    schema: |\n{lines}"
        "sinks:\n  b: {type: blackhole, from: a}\n"
    )
    places = [f"x.yaml:{line} invalid-schema" for line in range(7, 12)]
    assert errors({"x.yaml": pipeline}) == sorted([*places, "x.yaml:12 unknown-type"])
