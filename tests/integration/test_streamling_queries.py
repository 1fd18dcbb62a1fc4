"""Queries of Streamling: functions, integers of 256 bits, tables of values, and side outputs.

The expected values of functions are those of the documentation of Flink and DataFusion.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from command_line import CommandLine

pytestmark = pytest.mark.spark

TEXTS: dict[str, Any] = {
    "regexp_extract(a, '([a-z]+)-([0-9]+)')": "foo-12",
    "regexp_extract(a, '([a-z]+)-([0-9]+)', 2)": "12",
    "regexp_extract(a, 'z+')": None,
    "regexp_replace(a, 'o', '$1')": "f$1$1-12",
    "regexp_count(a, 'o')": 2,
    "split(path, '.')": ["a", "b", "", "c"],
    "split('ab', '')": ["a", "b"],
    "split_index(path, '.', 1)": "b",
    "split_index(path, '.', 9)": None,
    "instr(a, 'o')": 2,
    "instr(a, 'o', 1, 2)": 3,
    "instr(a, 'o', -1)": 3,
    "locate('o', a)": 2,
    "elt(2, 'x', a)": "foo-12",
    "elt(5, 'x', a)": None,
    "hex(n)": "ff",
    "lowercase('AB')": "ab",
    "charlength(a)": 6,
    "regexp(a, 'o+')": True,
    "parse_url('http://h/p?q=1', 'QUERY', 'q')": "1",
    "parse_url('not a url', 'HOST')": None,
    "url_encode('a b&c')": "a+b%26c",
    "url_decode('%zz')": None,
    "translate3('abc', 'ab', 'x')": "xc",
    "_gs_split_string_to_array('a b')": ["a", "b"],
    "_gs_generate_series(3, 1, -1)": [3, 2, 1],
    "_gs_generate_series(1, 3)": [1, 2, 3],
    "_gs_xxhash('')": "99aa06d3014798d86001c324468d497f",
    "_gs_keccak256('')": "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
    "_gs_keccak256('0x')": "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
    "_gs_conv_base('255', 10, 16)": "ff",
    "7 / 2": 3,
    "make_array(1, 2)[1]": 1,
}
JSON: dict[str, Any] = {
    "json_value(j, '$.a')": "1",
    "json_value(j, '$.a', 'INTEGER')": 1,
    "json_value(j, '$.b')": None,
    "json_value(j, '$.none', 'STRING', 'DEFAULT', 'x')": "x",
    "json_value('bad', '$.a')": None,
    "json_query(j, '$.b')": '{"c":[1,2]}',
    "json_query(j, '$.a')": None,
    "json_query(j, '$.a', 'STRING', 'WITH ARRAY WRAPPER')": "[1]",
    "json_exists(j, '$.b.c[1]')": True,
    "json_exists(j, '$.b.c[2]')": False,
    "is_json(j, 'OBJECT')": True,
    "is_json('1', 'ARRAY')": False,
    "is_json(CAST(NULL AS VARCHAR))": False,
    "json_quote('a\"b')": '"a\\"b"',
    "json_unquote('\"a\"')": "a",
    "json('{ \"x\": 1 }')": '{"x":1}',
    "try_parse_json('{')": None,
    "json_array(n, a, NULL, '[1]')": '[255,"foo-12",null,[1]]',
    "json_array_absent_on_null(n, NULL)": "[255]",
    "json_object('k', n, 'none', NULL)": '{"k":255,"none":null}',
    "json_string(make_array(1, 2))": "[1,2]",
    "json_string(a)": '"foo-12"',
}
ARRAYS: dict[str, Any] = {
    "array_enumerate(make_array('x', 'y'))": [
        {"index": 0, "value": "x"}, {"index": 1, "value": "y"},
    ],
    "array_filter(items, 'kind', 'b')": [{"kind": "b", "size": 2}],
    "array_filter_first(items, 'size', 9)": None,
    "array_filter_in(items, 'kind', make_array('a', 'z'))": [{"kind": "a", "size": 1}],
    "array_struct_field(items, 'kind')": ["a", "b"],
    "_gs_zip_arrays(make_array(1, 2), make_array('p', 'q'))": [
        {"f0": 1, "f1": "p"}, {"f0": 2, "f1": "q"},
    ],
    "to_large_list(make_array(1))": [1],
    "_gs_byte_to_hex(_gs_hex_to_byte('0x0aff'))": "0aff",
}  # fmt: skip
LARGEST = 2**256 - 1
WIDE: dict[str, Any] = {
    "big - 1": str(LARGEST - 1),
    "to_u256(n) + to_u256(2) * to_u256(3)": "261",
    "(to_i256(1) - to_i256(4)) / to_i256(2)": "-1",
    "big > to_u256('9')": True,
    "to_u256(n) = 255": True,
    "big % 10": "5",
}
ROW = {
    "id": 1, "a": "foo-12", "path": "a.b..c", "n": 255, "j": '{"a": 1, "b": {"c": [1, 2]}}',
    "items": [{"kind": "a", "size": 1}, {"kind": "b", "size": 2}], "digits": str(LARGEST),
}  # fmt: skip
FILE = """\
sources:
  rows: {{type: file, path: in, format: ndjson, mode: {{type: bounded}}}}
  lines: {{type: file, path: lines, format: csv, mode: {{type: bounded}}}}
transforms:
  wide: {{type: sql, primary_key: id, sql: "SELECT *, to_u256(digits) AS big FROM rows"}}
{nodes}
  never: {{type: dynamic_table, backend_type: in-memory, backend_entity_name: never}}
  seen: {{type: dynamic_table, backend_type: InMemory, backend_entity_name: seen,
         sql: "SELECT CAST(id AS VARCHAR) FROM lines WHERE id > 8"}}
  checked:
    type: sql
    primary_key: id
    sql: |
      SELECT id, day, dynamic_table_check('seen', CAST(id AS VARCHAR)) AS seen,
             dynamic_table_check('never', CAST(id AS VARCHAR)) AS never
      FROM lines
      WHERE id > 7;
sinks:
  checked: {{type: memory, from: checked, exclude_gs_op: "true"}}
  some: {{type: print, from: lines, sample_every: "4"}}
{sinks}
"""
PLUGIN = """\
import json
from pathlib import Path

from penstock.sdk import Config, SideOutput, plugin


class AuditConfig(Config):
    path: str


@plugin("audit.rows")
class Audit(SideOutput[AuditConfig]):
    '''Writes the numbers of rows.'''

    def observe(self, rows):
        with Path(self.config.path).open("a") as file:
            file.write(json.dumps([rows.node, rows.count]) + "\\n")
"""


def test_queries(cli: CommandLine, tmp_path: Path) -> None:
    from penstock.connectors.memory import tables

    groups = {"texts": TEXTS, "json": JSON, "arrays": ARRAYS, "integers": WIDE}
    nodes, sinks = [], []
    for name, group in groups.items():
        items = ",\n        ".join(f"{text} AS c{number}" for number, text in enumerate(group))
        nodes.append(
            f"  {name}:\n    type: sql\n    primary_key: id\n    sql: |\n      SELECT id,\n"
            f"        {items}\n      FROM wide\n"
        )
        sinks.append(f"  {name}: {{type: memory, from: {name}}}\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(json.dumps(ROW) + "\n")
    for day in (1, 2):
        (tmp_path / "lines" / f"day={day}").mkdir(parents=True)
        lines = "".join(f"{5 * (day - 1) + number}\n" for number in range(1, 6))
        (tmp_path / "lines" / f"day={day}" / "a.csv").write_text(f"id\n{lines}")
    (tmp_path / "audit_plugin.py").write_text(PLUGIN)
    (tmp_path / "config.yaml").write_text(
        "plugin:\n  path: audit_plugin.py\n  side_output_ids: [audit.rows]\n"
        f"  side_output_options: {{audit.rows: {{path: {tmp_path / 'audit.jsonl'}}}}}\n"
    )
    (tmp_path / "x.yaml").write_text(FILE.format(nodes="".join(nodes), sinks="".join(sinks)))
    done = cli(tmp_path, "run", "x.yaml", "--quiet")
    assert done.returncode == 0, done.stderr
    for name, group in groups.items():
        (row,) = tables[name].to_pylist()
        found = {text: row[f"c{number}"] for number, text in enumerate(group)}
        assert found == group
        assert row["_gs_op"] == "i"
    assert sorted(tables["checked"].to_pylist(), key=lambda row: int(row["id"])) == [
        {"id": 8, "day": 2, "seen": False, "never": False},
        {"id": 9, "day": 2, "seen": True, "never": False},
        {"id": 10, "day": 2, "seen": True, "never": False},
    ]
    assert len(done.stdout.splitlines()) == 2, done.stdout
    observed = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert sum(count for node, count in observed if node == "lines") == 10
