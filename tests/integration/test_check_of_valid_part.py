"""`penstock check` analyses the SQL that does not depend on an error in the files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

PIPELINE = """
sources:
  orders: {type: memory, rows: [], max_row: 3, schema: "id LONG, price DOUBLE"}
  broken: {type: memory, rows: [], schema: id LONGG}
transforms:
  unknown_node: {type: sql, sql: SELECT * FROM oders}
  unknown_column: {type: sql, sql: SELECT prise FROM orders}
  after_error: {type: sql, sql: SELECT ib FROM broken}
sinks:
  out: {type: blackhole, from: unknown_node}
  rest: {type: blackhole, from: unknown_column}
"""


def test_check_reports_errors_of_files_and_of_sql(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(PIPELINE)
    run = cli(tmp_path, "check", "shop.yaml", "--json")
    report = json.loads(run.stdout)
    found = [(error["code"], error["line"]) for error in report["errors"]]
    assert run.returncode == 2
    assert sorted(found) == [
        ("unknown-column", 7), ("unknown-node", 6), ("unknown-option", 3), ("unknown-type", 4),
    ]  # fmt: skip


UNKNOWN_COLUMNS = """
sources:
  broken: {type: generate, fields: {id: {type: choice, values: [1]}}}
transforms:
  query: {type: sql, sql: "SELECT id,, FROM broken"}
  condition: {type: filter, from: query, where: id > > 3}
  columns: {type: select, from: broken, columns: {twice: "2 * id", half: "id / / 2"}}
  window: {type: sql, sql: "SELECT count(*) AS n FROM broken GROUP BY tumble(interval '1 minute')"}
sinks:
  out: {type: print, from: condition, mode: replace}
  rest: {type: blackhole, from: window}
"""


def test_check_reports_syntax_and_modes_downstream_of_an_error(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(UNKNOWN_COLUMNS)
    run = cli(tmp_path, "check", "shop.yaml", "--json")
    found = [(error["code"], error["line"]) for error in json.loads(run.stdout)["errors"]]
    assert sorted(found) == [
        ("invalid-sql", 5), ("invalid-sql", 6), ("invalid-sql", 7), ("missing-option", 3),
        ("unknown-option", 3), ("unsupported-mode", 10),
    ]  # fmt: skip


def test_all_unknown_columns_are_reported_at_once(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "x.yaml").write_text(
        "name: x\n"
        'sources:\n  orders: {type: memory, schema: "id INT, x INT", rows: []}\n'
        "transforms:\n"
        '  t: {type: sql, sql: "SELECT idd, o.xx, y + 1 AS z, idd FROM orders o WHERE yyyy > 1"}\n'
        '  u: {type: filter, from: orders, where: "id > 1 AND aa > bb"}\n'
        '  v: {type: select, from: orders, columns: [idd, xx, "y + 1 AS z"]}\n'
        "sinks:\n"
        "  a: {type: print, from: t}\n  b: {type: print, from: u}\n  c: {type: print, from: v}\n"
    )
    errors = json.loads(cli(tmp_path, "check", "x.yaml", "--json").stdout)["errors"]
    assert {error["code"] for error in errors} == {"unknown-column"}
    assert [(error["line"], error["message"].split()[-1]) for error in errors] == [
        (5, '"idd"'), (5, '"o.xx"'), (5, '"y"'), (5, '"yyyy"'), (6, '"aa"'), (6, '"bb"'),
        (7, '"idd"'), (7, '"xx"'), (7, '"y"'),
    ]  # fmt: skip


BELOW = """
sources:
  orders: {type: memory, rows: [], schema: id LONG}
  broken: {type: memory, rows: [], schema: id LONGG}
functions:
  twice: {sql: x + x, args: {x: BIGNT}}
transforms:
  wrong: {type: sql, sql: "SELECT idd, twice(id) AS t FROM orders"}
  functions: {type: sql, sql: "SELECT uppr(nope) AS u, twice(nope) AS t, qq() AS q FROM wrong
    JOIN orders"}
  syntax: {type: filter, from: functions, where: nope > > 3}
  rows: {type: sql, sql: "SELECT * FROM orders JOIN rowss(3) JOIN syntax"}
  untimed: {type: sql, sql: "SELECT count(*) AS n FROM orders GROUP BY tumble(interval '1 minute')"}
  nothing: {type: filter, from: untimed, where: uppr(nope) > 3}
  columns: {type: select, from: broken, columns: {a: lowr(id), b: "twice(id)", c: "id / / 2"}}
  windows: {type: sql, sql: "SELECT smu(id) AS s FROM broken GROUP BY tumble(interval '1 minute')"}
sinks:
  out: {type: blackhole, from: syntax}
"""


def test_check_reports_syntax_and_functions_below_an_error(cli: Any, tmp_path: Path) -> None:
    """A function with an error is none that is unknown."""
    (tmp_path / "shop.yaml").write_text(BELOW)
    run = cli(tmp_path, "check", "shop.yaml", "--json")
    found = [
        (each["line"], each["column"], each["code"]) for each in json.loads(run.stdout)["errors"]
    ]
    assert found == [
        (4, 47, "unknown-type"), (6, 33, "unknown-type"), (8, 35, "unknown-column"),
        (9, 39, "unknown-function"), (9, 74, "unknown-function"), (11, 57, "invalid-sql"),
        (12, 53, "unknown-function"), (13, 72, "no-event-time"), (14, 49, "unknown-function"),
        (15, 54, "unknown-function"), (15, 89, "invalid-sql"), (16, 37, "unknown-function"),
    ]  # fmt: skip


NAMES = """
sources:
  orders: {type: memory, rows: [],
    schema: "id LONG, price DOUBLE, item STRING, place STRUCT<x: INT>"}
transforms:
  groups: {type: sql, sql: "SELECT uppr(itm) AS i, smu(prise) AS s, qq(zz) AS q
    FROM orders GROUP BY uppr(itm)"}
  qualified: {type: sql, sql: "SELECT o.idd, o.place.xx, o.prise, p.idd AS i
    FROM orders o JOIN orders p ON o.id = p.id AND asb(o.id) > 1"}
  nested: {type: sql, sql: "SELECT s.idd, s.idd + 1 AS k, s.pp
    FROM (SELECT idd, price FROM orders) s"}
  having: {type: sql, sql: "SELECT p FROM (SELECT id, price AS p FROM orders)
    GROUP BY id HAVING qq(p) > 1"}
  where: {type: filter, from: orders, where: "uppr(itm) = 'a' AND qq() > id AND idd > 3"}
  columns: {type: select, from: orders, columns: {a: uppr(itm), b: "place.x + place.y"}}
  window: {type: sql, scope: batch, sql: "SELECT smu(idd) OVER (PARTITION BY zz) AS n FROM orders"}
  duplicates: {type: dedupe, from: orders, keys: [idd, id, itm], within: forever}
sinks:
  out: {type: blackhole, from: orders}
"""


def test_all_unknown_names_of_a_query_are_reported_at_once(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "x.yaml").write_text(NAMES)
    (tmp_path / "x.sql").write_text(
        "CREATE TABLE t (id BIGINT) WITH (connector = 'files', path = 'a.json', format = 'json');\n"
        "CREATE VIEW v AS SELECT uppr(id) AS u,\n"
        "  idd AS a, t.iid AS b, json_gett('{}', '$.x') AS c FROM t;\n"
        "SELECT smu(\"ids\") FROM t GROUP BY tmble(interval '1 minute');\n"
    )
    assert _unknown_names(cli(tmp_path, "check", "x.yaml", "--json")) == [
        (6, 36, "uppr", "upper"), (6, 41, "itm", "item"), (6, 52, "smu", "sum"),
        (6, 56, "prise", "price"), (6, 69, "qq", None), (6, 72, "zz", None),
        (8, 39, "o.idd", "o.id"), (8, 54, "xx", None), (8, 58, "o.prise", "o.price"),
        (8, 67, "p.idd", "p.id"), (9, 52, "asb", "abs"),
        (10, 59, "s.pp", None), (11, 18, "idd", "id"), (13, 24, "qq", None),
        (14, 47, "uppr", "upper"), (14, 52, "itm", "item"), (14, 67, "qq", None),
        (14, 81, "idd", "id"),
        (15, 54, "uppr", "upper"), (15, 59, "itm", "item"), (15, 85, "y", None),
        (16, 50, "smu", "sum"), (16, 54, "idd", "id"), (16, 78, "zz", None),
        (17, 51, "idd", "id"), (17, 60, "itm", "item"),
    ]  # fmt: skip
    assert _unknown_names(cli(tmp_path, "check", "x.sql", "--json")) == [
        (2, 25, "uppr", "upper"), (3, 3, "idd", "id"), (3, 13, "t.iid", "t.id"),
        (3, 25, "json_gett", None), (4, 8, "smu", "sum"), (4, 13, "ids", "id"),
        (4, 35, "tmble", "tumble"),
    ]  # fmt: skip


def _unknown_names(run: Any) -> list[tuple[int, int, str, str | None]]:
    """Returns line, column and name of each error, and the nearest name."""
    found = []
    for error in json.loads(run.stdout)["errors"]:
        nearest = re.fullmatch(r'did you mean "(.*)"\?', error["hint"] or "")
        name = re.fullmatch(r'.*there is no \w+ "(.*)"', error["message"])
        assert name is not None, error
        found.append((error["line"], error["column"], name[1], nearest[1] if nearest else None))
    return found


SCRIPT = """
CREATE TABLE visits (id BIGINT) WITH (connector = 'generate', rows = 3, fields.id = 'sequence');
CREATE FUNCTION twice(x BIGINT AS x * 2;
SELECT idd FROM visits;
CREATE VIEW broken SELECT 1;
SELECT * FROM broken WHERE nope > 1;
SELECT twice(id) FROM visits;
SELECT thrice(id) FROM visits;
INSERT INTO gone SELECT idd FROM visits;
"""


def test_check_reports_statements_beside_one_that_cannot_be_read(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text(SCRIPT)
    errors = json.loads(cli(tmp_path, "check", "x.sql", "--json").stdout)["errors"]
    assert [(error["line"], error["code"]) for error in errors] == [
        (3, "invalid-sql"), (4, "unknown-column"), (5, "invalid-sql"), (8, "unknown-function"),
        (9, "unknown-table"), (9, "unknown-column"),
    ]  # fmt: skip


def test_check_reports_nodes_beside_a_missing_include(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "include: functions.sql\n"
        'sources:\n  orders: {type: memory, schema: "id INT, x INT", rows: []}\n'
        'transforms:\n  t: {type: sql, sql: "SELECT f(id) AS a FROM orders"}\n'
        '  u: {type: filter, from: orders, where: "aa > 1"}\n'
        "sinks:\n  a: {type: print, from: t}\n  b: {type: print, from: u}\n"
        "  c: {type: print, from: included}\n"
    )
    errors = json.loads(cli(tmp_path, "check", "x.yaml", "--json").stdout)["errors"]
    assert [(error["line"], error["code"]) for error in errors] == [
        (1, "missing-file"), (6, "unknown-column"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ("id INT, at TIMESTAMP", ("unknown-column", 3, 'did you mean "at"?')),
        ("id INT, att STRING", ("wrong-type", 3, "Declare the column as TIMESTAMP.")),
    ],
)
def test_check_reports_an_event_time_once(
    cli: Any, tmp_path: Path, columns: str, error: tuple[str, int, str]
) -> None:
    """The files and Spark both have the error."""
    (tmp_path / "shop.yaml").write_text(f"""sources:
  orders: {{type: memory, rows: [], schema: "{columns}",
    watermark: {{column: att, delay: 5s}}}}
transforms:
  ids: {{type: sql, sql: SELECT id FROM orders}}
sinks:
  out: {{type: blackhole, from: ids}}
""")
    run = cli(tmp_path, "check", "shop.yaml", "--json")
    found = json.loads(run.stdout)["errors"]
    assert [(each["code"], each["line"], each["hint"]) for each in found] == [error]
