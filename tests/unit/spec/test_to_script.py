"""Pipelines as SQL scripts: clauses, values, references, and the language of `penstock convert`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.convert import convert
from penstock.core.errors import SpecError, ValidationErrors, flatten_errors
from penstock.spec.documents.reading import load
from penstock.spec.script.writer import to_script

SHOP = r"""
name: shop
runtime: {trigger: 1 second, restart: {attempts: 3}, spark: {spark.sql.ansi.enabled: true}}
connections:
  kafka: {type: kafka, brokers: "${BROKERS}", auth: {password: "${secret:file/kafka}"}}
  file: {type: sqlite, path: shop.db}
functions:
  twice: {args: {x: BIGINT}, returns: BIGINT, code: "return x * 2 # '$$'", skip_nulls: true}
  half: {args: [x], sql: x / 2}
  most: {kind: aggregate, args: {x: INT}, returns: INT, code: return max(x), concurrency: 2}
  parts: {kind: table, args: {x: STRING}, returns: "n INT, `a b` STRING", code: "return []"}
sources:
  "the orders":
    type: kafka
    connection: kafka
    topic: orders
    offset: -1.5
    format: {type: json, nulls: keep, names: ["it's", 'a\b'], on: null}
    schema: "id BIGINT NOT NULL, `a b` STRUCT<x: INT, y: ARRAY<STRING>>, at TIMESTAMP"
    metadata: {part: partition}
    metadata_types: {part: INT}
    watermark: {column: at, bound: "least(at, now())", idle: 5 seconds}
    primary_key: id
  countries: {type: files, path: in.csv, schema: "code STRING", lookup: true}
  rates:
    type: files
    path: in.csv
    lookup: {cache: {ttl: 1 minute}}
    watermark: {column: t, delay: 5}
transforms:
  large:
    type: sql
    sql: |
      -- The large ones.
      SELECT id,  'a;b' AS t   -- ${LIMIT}
      FROM `the orders`
      WHERE id > ${LIMIT}  -- the end
  known:
    type: dynamic_table
    sql: SELECT t FROM large;
    storage: {connection: file, table: known}
    column: t
  blocked: {type: dynamic_table, storage: {type: sqlite, path: b.db, table: b}, cache: {ttl: 5s}}
sinks:
  out:
    type: files
    from: large
    path: out
    partition_by: [id]
    primary_key: [id]
    headers: {a.b: x, c: {d: 1}}
"""
SCRIPT = r"""SET name = 'shop';
SET trigger = '1 second';
SET restart.attempts = 3;
SET 'spark.sql.ansi.enabled' = TRUE;

CREATE FUNCTION twice(x BIGINT)
RETURNS BIGINT
RETURNS NULL ON NULL INPUT
LANGUAGE PYTHON AS $code$return x * 2 # '$$'$code$;

CREATE MACRO half(x) AS
x / 2;

CREATE AGGREGATE FUNCTION most(x INT)
RETURNS INT
WITH (concurrency = 2)
LANGUAGE PYTHON AS $$return max(x)$$;

CREATE FUNCTION parts(x STRING)
RETURNS TABLE (n INT, `a b` STRING)
LANGUAGE PYTHON AS $$return []$$;

CREATE TABLE `the orders` (
    id BIGINT NOT NULL,
    `a b` STRUCT<x: INT, y: ARRAY<STRING>>,
    at TIMESTAMP,
    part INT METADATA FROM 'partition',
    PRIMARY KEY (id),
    WATERMARK FOR at AS least(at, now())
) WITH (
    connector = 'kafka',
    format = 'json',
    format.nulls = 'keep',
    format.names = ['it\'s', 'a\\b'],
    format.on = NULL,
    topic = 'orders',
    offset = -1.5,
    brokers = '${BROKERS}',
    auth.password = '${secret:file/kafka}',
    idle = '5 seconds'
);

CREATE TEMPORARY TABLE countries (
    code STRING
) WITH (
    connector = 'files',
    path = 'in.csv'
);

CREATE TABLE rates WITH (
    connector = 'files',
    path = 'in.csv',
    lookup.cache.ttl = '1 minute',
    watermark.column = 't',
    watermark.delay = 5
);

CREATE VIEW large AS
SELECT id,  'a;b' AS t   -- ${LIMIT}
FROM `the orders`
WHERE id > ${LIMIT};

CREATE TABLE known WITH (
    connector = 'dynamic_table',
    storage.table = 'known',
    storage.type = 'sqlite',
    storage.path = 'shop.db',
    column = 't'
) AS
SELECT t FROM large;

CREATE TABLE blocked WITH (
    connector = 'dynamic_table',
    storage.type = 'sqlite',
    storage.path = 'b.db',
    storage.table = 'b',
    cache.ttl = '5s'
);

CREATE TABLE out (
    PRIMARY KEY (id)
) PARTITIONED BY (id) WITH (
    connector = 'files',
    path = 'out',
    headers.`a.b` = 'x',
    headers.c.d = 1
);

INSERT INTO out SELECT * FROM large;
"""


def test_clauses_and_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS", "the value of the variable")
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP)
    assert to_script([str(path)]).text == SCRIPT


def test_a_script_has_tests_in_a_file_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(
        "sources: {a: {type: memory, rows: []}}\nsinks: {p: {type: print, from: a}}\n"
        "tests: [{name: x, given: {}}]\n"
    )
    convert([path])
    printed = capsys.readouterr()
    assert printed.out.endswith("INSERT INTO p SELECT * FROM a;\n")
    assert "the script has no 1 test case" in printed.err and "shop.test.yaml" in printed.err


def test_the_language_of_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, first, second = (tmp_path / name for name in ("a.sql", "b.yaml", "c.yaml"))
    script.write_text("CREATE TABLE a WITH (connector = 'memory');")
    first.write_text("sources: {a: {type: memory}}\n")
    second.write_text("sinks: {p: {type: print, from: a}}\n")

    def printed(*files: Path, **options: str) -> str:
        convert([*files], **options)  # type: ignore[arg-type]
        return capsys.readouterr().out

    table = "CREATE TABLE a WITH (connector = 'memory');\n"
    assert printed(first) == table
    assert printed(script) == printed(first, to="yaml") == "sources:\n  a:\n    type: memory\n"
    assert printed(first, second).startswith("sources:\n")
    assert printed(first, second, to="sql").startswith(table)
    assert printed(script, to="sql") == table


def test_nothing_is_printed_with_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "sources: {a: {type: memory}}\ntransforms: {b: {type: filter, from: a, where: x}}\n"
        "dead_letter: {type: files, path: dead}\n"
    )
    with pytest.raises(ValidationErrors) as caught:
        convert([path])
    assert capsys.readouterr().out == ""
    errors = flatten_errors(caught.value)
    places = [(error.where.line, error.where.column) for error in errors if error.where]
    assert sorted(places) == [(2, 24), (3, 1)]


def test_a_negative_number_is_a_value(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text("CREATE TABLE a WITH (connector = 'memory', x = -1, y = [-0.5, 2]);")
    source = load([path]).root.data()["sources"]["a"]
    assert source == {"type": "memory", "x": -1, "y": [-0.5, 2]}
    path.write_text("CREATE TABLE a WITH (connector = 'memory', x = - 'a');")
    with pytest.raises(SpecError, match="expected a number"):
        load([path])


def test_an_insert_of_all_rows_connects_the_node_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text(
        "CREATE TABLE a WITH (connector = 'memory'); CREATE VIEW V AS SELECT 1 AS n;\n"
        "CREATE TEMPORARY TABLE l WITH (connector = 'memory');\n"
        "CREATE TABLE o WITH (connector = 'print'); INSERT INTO o SELECT * FROM v;\n"
        "CREATE TABLE p WITH (connector = 'print'); INSERT INTO p SELECT * FROM a;\n"
        "INSERT INTO p SELECT * FROM v;\n"
        "CREATE TABLE q WITH (connector = 'print'); INSERT INTO q SELECT * FROM l;\n"
    )
    data = load([path]).root.data()
    inputs = {name: sink["from"] for name, sink in data["sinks"].items()}
    assert inputs == {"o": "V", "p": "p_input", "q": "q_query"}
    assert data["transforms"]["p_input"]["sql"] == "SELECT * FROM a UNION ALL SELECT * FROM V"


def test_framing_of_connectors(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "name: a\nsources:\n"
        "  a: {type: http, listen: 'h:1', framing: lines, schema: id INT, format: json}\n"
        "sinks:\n  b: {type: http, url: 'http://h', framing: array, from: a, format: json}\n"
    )
    text = to_script([str(file)]).text
    assert "framing = 'lines'" in text and "framing = 'array'" in text
