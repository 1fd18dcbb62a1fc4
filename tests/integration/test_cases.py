"""`penstock test`, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from command_line import CommandLine

pytestmark = pytest.mark.spark

PIPELINE = """\
name: late
sources:
  flights:
    type: files
    path: nowhere/*.csv
    schema: carrier STRING, dep_delay INT
transforms:
  late:
    type: sql
    sql: SELECT * FROM flights WHERE dep_delay > 60
sinks:
  out: {type: files, from: late, path: out, format: json}
"""

CASES = """\
tests:
  - name: late ones stay
    given:
      flights: [{carrier: UA, dep_delay: 61}, {carrier: AA, dep_delay: 60}]
    expect:
      out: [{carrier: UA}]
  - name: "a bad line"
    given:
      flights:
        payloads: ["UA,70", "UA,soon"]
    expect:
      out: [{carrier: UA, dep_delay: 70}]
    dead_letters: [{node: flights, code: wrong-type}]
"""

WRONG = """\
  - name: wrong on purpose
    given:
      flights:
        payloads: ["UA,61", "B6,90", "UA,soon"]
    expect:
      out:
        - {carrier: UA, dep_delay: 62}
        - {carrier: XX, dep_delay: 1}
  - name: an error that does not come
    given: {flights: []}
    error: {code: divide-by-zero}
  - name: a value that does not fit
    given:
      flights:
        - {carrier: UA, dep_delay: soon}
  - name: a column that is not there
    given:
      flights: [{carrier: UA}]
    expect:
      late: [{carier: UA}]
"""


def test_cases_that_pass(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "late.yaml").write_text(PIPELINE)
    (tmp_path / "late.test.yaml").write_text(CASES)
    done = cli(tmp_path, "test", "late.yaml", "late.test.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ok      late ones stay  late.test.yaml:2" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("2 passed in ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["late.test.yaml", "late.yaml"]


def test_failures_are_reported(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "late.yaml").write_text(PIPELINE + CASES + WRONG)
    done = cli(tmp_path, "test", "late.yaml", "--junit", "report.xml")
    assert (done.returncode, done.stderr) == (2, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    at = lines.index("        out: 1 row different, 1 row missing, 1 row unexpected")
    assert [line.split() for line in lines[at + 1 : at + 5]] == [
        ["carrier", "dep_delay"],
        ["different", "UA", "62,", "got", "61", "late.yaml:32"],
        ["missing", "XX", "1", "late.yaml:33"],
        ["unexpected", "B6", "90"],
    ]
    assert "        dead letters: 1 unexpected" in lines
    assert "        expected the error divide-by-zero, found no error" in lines
    assert 'error[wrong-type]: column "dep_delay": expected an INT, found "soon"' in done.stdout
    assert 'error[unknown-column]: "late" has no column "carier"' in done.stdout
    assert 'did you mean "carrier"?' in done.stdout
    assert lines[-1].startswith("2 passed, 4 failed in ")

    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    counts = {key: suite.get(key) for key in ("name", "tests", "failures", "errors")}
    assert counts == {"name": "late", "tests": "6", "failures": "2", "errors": "2"}
    assert "got 61" in (suite.findtext("testcase[@name='wrong on purpose']/failure") or "")


def test_for_programs_and_only_some(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "late.yaml").write_text(PIPELINE + CASES + WRONG)
    done = cli(tmp_path, "test", "late.yaml", "--json", "--case", "late*", "--case", "on purpose")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert (report["passed"], report["failed"]) == (1, 1)
    good, bad = report["cases"]
    assert (good["name"], good["passed"], good["line"]) == ("late ones stay", True, 14)
    assert bad["nodes"]["out"]["different"] == [
        {
            "expected": {"carrier": "UA", "dep_delay": 62},
            "got": {"carrier": "UA", "dep_delay": 61},
            "columns": ["dep_delay"],
        }
    ]
    assert [letter["code"] for letter in bad["dead_letters"]["unexpected"]] == ["wrong-type"]


def test_a_file_without_cases_has_a_hint(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "late.yaml").write_text(PIPELINE)
    done = cli(tmp_path, "test", "late.yaml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith('late.yaml has no test cases. Add a case below "tests:"')


def test_errors_of_a_file_are_reported_and_the_others_run(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "late.yaml").write_text(PIPELINE + CASES)
    (tmp_path / "typo.yaml").write_text(PIPELINE.replace("FROM flights", "FROM flight") + CASES)
    done = cli(tmp_path, "test", "typo.yaml", "late.yaml")
    assert done.returncode == 2
    assert 'there is no source or transform "flight"' in done.stderr
    assert "typo.yaml:10:" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("2 passed in ")


def test_no_case_of_that_name(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "late.yaml").write_text(PIPELINE + CASES)
    done = cli(tmp_path, "test", "late.yaml", "--case", "nothing")
    assert done.returncode == 2
    assert 'no test case matches "nothing"' in done.stderr


UPDATING = """\
name: totals
sources:
  orders: {type: files, path: nowhere/*.jsonl, watch: true, schema: "k STRING, x INT"}
transforms:
  totals: {type: sql, sql: "SELECT k, count(*) AS n, sum(x) AS s FROM orders GROUP BY k"}
sinks:
  log: {type: print, from: totals}
  table:
    type: redis
    url: redis://localhost
    key: "{k}"
    from: totals
    mode: upsert
    primary_key: [k]
tests:
  - name: table and changes
    given: &rows
      orders: {batches: [[{k: a, x: 1}, {k: b, x: 2}], [{k: a, x: 5}]]}
    expect:
      totals:
        table: [{k: a, n: 2, s: 6}, {k: b, n: 1, s: 2}]
        changes: [{k: a, n: 1, _op: i}, {k: b}, {k: a, n: 1, _op: ub}, {k: a, n: 2, _op: u}]
      table: {table: [{k: a, n: 2}, {k: b, n: 1}]}
  - name: wrong
    given: *rows
    expect:
      table: {table: [{k: a, n: 3}, {k: b, n: 1}]}
      log: [{k: a, n: 2}, {k: b, n: 1}]
"""


def test_table_and_changes_of_updating_queries(tmp_path: Path, cli: CommandLine) -> None:
    (tmp_path / "totals.yaml").write_text(UPDATING)
    done = cli(tmp_path, "test", "totals.yaml")
    assert done.returncode == 1, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0].startswith("ok table and changes")
    assert "table.table: 1 row different" in lines
    assert "different a 3, got 2 totals.yaml:27" in lines
    assert "log: 2 rows unexpected" in lines
    assert "k n _op" in lines
    assert "unexpected a 1 ub" in lines
