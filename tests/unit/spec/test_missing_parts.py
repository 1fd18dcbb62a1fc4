"""Errors of independent parts beside a file or a statement that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import app

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
        ("SELECT 'a", "invalid-sql", True),
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


def test_an_open_quote_may_begin_in_a_statement_before(errors: Errors) -> None:
    script = f"CREATE VIEW v AS SELECT 'a;\n{CLICKS}SELECT 'b' FROM clicks;\n"
    assert len(errors({"x.sql": script})) == 1


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
