"""Files of Streamling: recognition, names, settings, and errors in the user's words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.core.known_secrets import conceal
from penstock.spec.front_end import CHOICE, Choice, language_of
from penstock.spec.load import load
from penstock.spec.parsed import ParsedPipeline
from penstock.spec.yaml.writer import convert

CHOSEN = Choice("streamling")
HEAD = "sources:\n  i: {type: kafka, topic: t, primary_key: k}\ntransforms:\n"
TAIL = "sinks:\n  s: {type: blackhole, from: n}\n"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("STREAMLING__")]:
        monkeypatch.delenv(name)


def read(tmp_path: Path, text: str, choice: Choice = CHOSEN) -> ParsedPipeline:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    token = CHOICE.set(choice)
    try:
        return load([file])
    finally:
        CHOICE.reset(token)


def messages(found: Sequence[object]) -> list[str]:
    return [str(each).splitlines()[0] for each in found]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (HEAD.replace("transforms:", "transforms: {}") + TAIL, "streamling"),
        ("sources: {i: {type: file, path: x, format: csv}}\nsinks: {}\n", "streamling"),
        ("sources: {i: {type: a.b, options: {x: 1}}}\nsinks: {}\n", "streamling"),
        ("sources: {i: {type: postgres_cdc_source}}\nsinks: {}\n", "streamling"),
        ("definition:\n  sources: {i: {type: kafka, topic: t}}\n  transforms: {}\n", "streamling"),
        ("sources: {i: {type: kafka, topic: t}}\nsinks: {}\n", "yaml"),
        ("sources: {i: {type: kafka, topic: t, start: latest}}\ntransforms: {}\n", "yaml"),
        ("sources: {i: {type: kafka, topic: t}}\ntransforms: {n: {type: sql, sql: x}}\n", "yaml"),
        ("sources: {i: {type: kafka, brokers: b, topic: t}}\nsinks: {}\n", "yaml"),
        ("sources: {i: {type: kafka, connection: c, topic: t}}\nsinks: {}\n", "yaml"),
        ("sources: {i: {type: generate}}\ntransforms: {n: {type: script, code: x}}\n", "yaml"),
        ("sources: {i: {type: a.b, x: 1}}\nsinks: {}\n", "yaml"),
        ("sources: [\n", "yaml"),
        ("streams: []\n", "arkflow"),
    ],
)
def test_recognition(tmp_path: Path, text: str, language: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert language_of(str(tmp_path / "x.yaml")) == language


def test_an_ambiguous_file_says_how_it_is_read(tmp_path: Path) -> None:
    text = "sources: {i: {type: a.b, options: {x: 1}}}\nsinks: {s: {type: print, from: i}}\n"
    found = read(tmp_path, text, Choice()).warnings
    assert [warning.code for warning in found] == ["ambiguous-language"]
    assert not read(tmp_path, text).warnings


def test_a_file(tmp_path: Path) -> None:
    pipeline = read(tmp_path, """\
name: the-name
definition:
  sources:
    raw.rows: {type: kafka, topic: t, primary_key: k, telemetry: {labels: {team: x}}}
    1st: {type: kafka, topic: t}
  transforms:
    n:
      type: sql
      primary_key: k
      sql: |
        SELECT raw.rows.k, rows.a, "raw"."rows"."B" FROM raw.rows
        UNION ALL SELECT k, a, b FROM (SELECT DISTINCT k, a, b FROM Raw.Rows r) x
        UNION ALL SELECT count(*), 1, 2 FROM "1st"
  sinks:
    raw.rows: {type: print, from: RAW.rows}
    s: {type: blackhole, from: n}
""")  # fmt: skip
    assert messages(pipeline.errors) == []
    data = pipeline.data
    assert data["name"] == "the-name"
    assert [*data["sources"]] == ["raw_rows_records", "node_1st_records"]
    assert data["sinks"]["raw_rows"]["from"] == "raw_rows"
    assert data["transforms"]["n"]["sql"].splitlines() == [
        "SELECT rows.k, rows.a, `rows`.`B`, _gs_op FROM raw_rows AS `rows`",
        "UNION ALL SELECT k, a, b, _gs_op FROM (SELECT DISTINCT k, a, b FROM raw_rows r) x",
        "UNION ALL SELECT count(*) AS `count(*)`, 1 AS `Int64(1)`, 2 AS `Int64(2)` "
        "FROM node_1st AS `1st`",
    ]


def test_kinds_of_change_propagate(tmp_path: Path) -> None:
    def sql(text: str) -> str:
        parsed = read(tmp_path, f'{HEAD}  n: {{type: sql, primary_key: k, sql: "{text}"}}\n{TAIL}')
        return str(parsed.data["transforms"]["n"]["sql"])

    assert sql("SELECT k FROM i") == "SELECT k, _gs_op FROM i"
    assert sql("SELECT * FROM i") == "SELECT * FROM i"
    assert sql("SELECT k, 'd' AS _gs_op FROM i") == "SELECT k, 'd' AS _gs_op FROM i"
    assert sql("SELECT * EXCEPT (_gs_op) FROM i") == "SELECT * EXCEPT (_gs_op), _gs_op FROM i"
    assert sql("SELECT k FROM (SELECT k FROM i) x") == (
        "SELECT k, _gs_op FROM (SELECT k, _gs_op FROM i) x"
    )
    assert sql("WITH a AS (SELECT k FROM i) SELECT k FROM a WHERE k > 1") == (
        "WITH a AS (SELECT k, _gs_op FROM i) SELECT k, _gs_op FROM a WHERE k > 1"
    )
    assert sql("SELECT regexp_replace(k, 'a', '$1') AS k FROM i") == (
        "SELECT regexp_replace(k, 'a', '$$1', 'g') AS k, _gs_op FROM i"
    )
    assert sql("SELECT max(k) FROM i") == "SELECT max(k) AS `max(i.k)` FROM i"


def test_a_sink_has_the_key_of_its_input(tmp_path: Path) -> None:
    part = "  n: {type: basic_plugin.filter_transform, from: i, options: {a: b}}\n"
    sink = "sinks:\n  s: {type: kafka, from: n, topic: u, data_format: json}\n"
    assert read(tmp_path, HEAD + part + sink).data["sinks"]["s"]["key_columns"] == ["k"]


def test_scripts_keep_the_kind_of_change(tmp_path: Path) -> None:
    from py_mini_racer import MiniRacer

    for script, name in (("function f(x) {{ return {}; }}", "f"), ("(x) => ({})", "process")):
        code = script.format("[null, {...x, _gs_op: 'z', more: `${x.k}`}]")
        node = (
            "  n:\n    type: script\n    from: i\n    primary_key: k\n    language: javascript\n"
            f"    script: |\n      {code}\n"
        )
        pipeline = read(tmp_path, HEAD + node + TAIL)
        assert messages(pipeline.errors) == []
        made = str(pipeline.data["transforms"]["n"]["code"])
        assert f"= {name}(input)" in made
        call = "JSON.stringify(streamlingProcess({k: 1, _gs_op: 'u'}))"
        assert MiniRacer().eval(f"{made.replace('$${', '${')};{call}") == '[{"k":1,"_gs_op":"u"}]'


@pytest.mark.parametrize(
    ("part", "line", "message"),
    [
        ("  n: {type: sql, primary_key: k, sql: SELECT 1 FROM j}\n", 4, 'source or transform "j"'),
        ("  n: {type: handler, from: j, primary_key: k, url: x}\n", 4, 'source or transform "j"'),
        ("  n: {type: sql, sql: SELECT k FROM i}\n", 4, 'requires "primary_key"'),
        ("  n: {type: sqll, sql: x}\n", 4, 'there is no transform "sqll"'),
        ("  n: {from: i}\n", 4, 'requires "type"'),
        ("  I: {type: filter.x, from: i}\n  n: {type: a.b, from: i}\n", 4, 'the name "I"'),
        ("  n: {type: s2_sink, from: i}\n", 4, "not supported: Penstock has no client"),
        ("  n: {type: script, from: i, primary_key: k, language: javascript, script: x, "
         "schema: {a: list}}\n", 4, 'column "a" has the type list'),
        ("  n: {type: handler, from: i, primary_key: k, url: x, secret_name: s}\n", 4,
         'the secret "s"'),
        ("  n: {type: handler, from: i, primary_key: k, url: x, payload_version: 2}\n", 4,
         "expects 0 or 1, found 2"),
        ("  n: {type: dynamic_table, backend_type: Redis, backend_entity_name: x}\n", 4,
         'no backend "Redis"'),
        ("  n: {type: sql, primary_key: k, sql: SELECT k FROM i, telemetry: {labels: {id: x}}}\n",
         4, 'the label "id" is reserved'),
        ("  n: {type: sql, primary_key: k, sql: SELECT k FROM i, telemetry: {labels: {__a: x}}}\n",
         4, '"__a" is not a valid label'),
        ("  n: {type: sql, primary_key: k, sql: SELECT k FROM i}\n"
         "  o: {type: sql, primary_key: k, sql: SELECT k FROM i}\n", 5, 'nothing reads transform'),
    ],
)  # fmt: skip
def test_errors(tmp_path: Path, part: str, line: int, message: str) -> None:
    pipeline = read(tmp_path, HEAD + part + TAIL)
    found = [(error.where.line, str(error)) for error in pipeline.errors if error.where is not None]
    assert any(where == line and message in text for where, text in found), found


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{type: kafka, topic: t, data_format: json}", "requires schema"),
        ("{type: kafka, topic: t, schema: {a: int64}}", "the schema of Avro is in the registry"),
        ("{type: kafka, topic: t, schema_id_overrides: [{from: 1, to: 2}, {from: 1, to: 3}]}",
         "the schema 1 is replaced twice"),
        ("{type: clickhouse, table_name: t, start_at: '1'}", "requires primary_key"),
        ("{type: hybrid, bounded_sources: [], unbounded_source: {source_type: kafka, topic: t}}",
         "requires a list of bounded_sources"),
        ("{type: kafka, topic: t}", "requires a primary key"),
    ],
)  # fmt: skip
def test_errors_of_sources(tmp_path: Path, source: str, message: str) -> None:
    sink = "sinks:\n  s: {type: kafka, from: i, topic: u, data_format: json}\n"
    pipeline = read(tmp_path, f"sources:\n  i: {source}\ntransforms: {{}}\n{sink}")
    assert any(message in str(error) for error in pipeline.errors), pipeline.errors


def test_unknown_options(tmp_path: Path) -> None:
    node = "{type: sql, primary_key: k, sql: SELECT k FROM i, sqll: 1}"
    found = read(tmp_path, f"{HEAD}  n: {node}\n{TAIL}").errors
    assert 'has no option "sqll"' in str(found[0])
    plugin = "  n: {type: print_sink, from: i, more: 1}\n"
    text = f"{HEAD.replace('transforms:', 'transforms: {}')}sinks:\n{plugin}"
    warned = read(tmp_path, text)
    assert messages(warned.errors) == []
    assert 'has no option "more"' in str(warned.warnings[0])
    assert 'has no option "more"' in str(read(tmp_path, text, Choice("streamling", True)).errors[0])


def test_numbers_and_truth_values_in_quotes(tmp_path: Path) -> None:
    sink = "sinks:\n  s: {type: print, from: i, sample_every: '3', batch_size: \"5\"}\n"
    sink += "  m: {type: memory, from: i, exclude_gs_op: 'true'}\n"
    pipeline = read(tmp_path, HEAD.replace("transforms:", "transforms: {}") + sink)
    assert messages(pipeline.errors) == []
    data = pipeline.data
    assert (data["sinks"]["s"]["every"], data["sinks"]["s"]["batch"]) == (3, {"max_records": 5})
    assert data["transforms"]["m_rows"]["type"] == "drop"


def test_settings_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + "  n: {type: sql, primary_key: k, sql: SELECT k FROM i}\n" + TAIL
    (tmp_path / "config.yaml").write_text("kafka_source: {brokers: 'a:1', client_id: c}\n")
    (tmp_path / "other.json").write_text('{"kafka_source": {"brokers": "b:1"}, "unknown": 1}')
    source = read(tmp_path, text).data["sources"]["i_records"]
    assert (source["brokers"], source["properties"]) == ("a:1", {"client.id": "c"})
    monkeypatch.setenv("STREAMLING__KAFKA_SOURCE__BROKERS", "c:1")
    assert read(tmp_path, text).data["sources"]["i_records"]["brokers"] == "c:1"
    monkeypatch.delenv("STREAMLING__KAFKA_SOURCE__BROKERS")
    other = read(tmp_path, text, Choice("streamling", settings="other"))
    assert other.data["sources"]["i_records"]["brokers"] == "b:1"
    (warning,) = other.warnings
    assert warning.where is not None and warning.where.file == "other.json"
    missing = read(tmp_path, text, Choice("streamling", settings="none"))
    assert "there is no file of settings none" in str(missing.warnings[0])
    for content in ("streams: []\n", "", "# none\n"):
        (tmp_path / "config.yaml").write_text(content)
        found = read(tmp_path, text)
        assert (found.errors, found.warnings) == ([], ())


def test_secrets_are_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text(
        "postgres_sink: {pass: made-up-1, user: ann}\nhttp_secret_header: {key: X-Key}\n"
        "http_secret_value: {key: made-up-2}\n"
    )
    monkeypatch.setenv("STREAMLING__KAFKA_SOURCE__SASL_PASSWORD", "made-up-3")
    monkeypatch.setenv("STREAMLING__KAFKA_SOURCE__SECURITY_PROTOCOL", "sasl_plaintext")
    text = HEAD.replace("transforms:", "transforms: {}") + (
        "sinks:\n  s: {type: postgres, from: i, schema: s, table: t}\n"
        "  w: {type: webhook, from: i, url: 'http://h', secret_name: key}\n"
    )
    pipeline = read(tmp_path, text)
    assert pipeline.data["sinks"]["s"]["auth"]["password"] == "made-up-1"
    assert pipeline.data["sinks"]["w"]["headers"]["X-Key"] == "made-up-2"
    assert pipeline.data["sources"]["i_records"]["auth"]["password"] == "made-up-3"
    assert "made-up" not in repr(pipeline.data)
    printed = convert([str(tmp_path / "x.yaml")])
    assert "made-up" not in printed and "${STREAMLING__POSTGRES_SINK__PASS}" in printed
    assert conceal("made-up-1 made-up-2 made-up-3").replace("*", "").strip() == ""


def test_rows_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "sources: {i: {type: kafka, topic: t}}\n"
        "sinks: {s: {type: postgres, from: i, schema: s, table: t}}\n"
    )
    pipeline = read(tmp_path, text)
    assert [warning.code for warning in pipeline.warnings] == ["missing-option"]
    assert "<> 'd'" in pipeline.data["transforms"]["s_rows"]["sql"]
    monkeypatch.setenv("STREAMLING__ENFORCE_PRIMARY_KEYS", "true")
    assert [error.code for error in read(tmp_path, text).errors] == ["missing-option"]


def test_secrets_are_not_required_to_check_a_file(tmp_path: Path) -> None:
    sink = "sinks: {s: {type: webhook, from: i, url: 'http://h', secret_name: key}}\n"
    text = HEAD.replace("transforms:", "transforms: {}") + sink
    assert [error.code for error in read(tmp_path, text).errors] == ["unknown-secret"]
    assert messages(read(tmp_path, text, Choice("streamling", secrets=False)).errors) == []


def test_settings_without_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + "  n: {type: sql, primary_key: k, sql: SELECT k FROM i}\n" + TAIL
    monkeypatch.setenv("STREAMLING__STATE_BACKEND__BACKEND_TYPE", "Sqlite")
    monkeypatch.setenv("STREAMLING__KAFKA_SOURC__BROKERS", "x")
    pipeline = read(tmp_path, text)
    assert {each.code for each in pipeline.warnings} == {"unused-option", "unknown-option"}
    assert messages(pipeline.errors) == []


def test_preprocessors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "expand_files.py").write_text(
        "def expand(text, options):\n    return text.replace('TOPIC', options['topic'])\n"
    )
    monkeypatch.setenv("STREAMLING__PLUGIN__PREPROCESSOR_IDS", "expand_files:expand")
    name = "STREAMLING__PLUGIN__PREPROCESSOR_OPTIONS__EXPAND_FILES:EXPAND__TOPIC"
    monkeypatch.setenv(name, "orders")
    text = "sources: {i: {type: kafka, topic: TOPIC}}\nsinks: {s: {type: print, from: i}}\n"
    pipeline = read(tmp_path, text)
    assert messages(pipeline.errors) == []
    assert pipeline.data["sources"]["i_records"]["topic"] == "orders"
    for id_ in ("expand_files:none", "unknown", "expand_files:expand,json:loads"):
        monkeypatch.setenv("STREAMLING__PLUGIN__PREPROCESSOR_IDS", id_)
        assert read(tmp_path, text).errors


def test_jobs_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMLING__JOB_MODE", "true")
    sink = "sinks: {s: {type: print, from: i}}\n"
    for source in ("{type: kafka, topic: t}", "{type: file, path: x, format: csv}"):
        assert "does not end" in str(read(tmp_path, f"sources: {{i: {source}}}\n{sink}").errors[0])


def test_files_of_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMLING__PLUGIN__PATH", str(tmp_path / "f.py"))
    monkeypatch.setenv("STREAMLING__PLUGIN__SIDE_OUTPUT_IDS", "my.audit")
    monkeypatch.setenv("STREAMLING__PLUGIN__SIDE_OUTPUT_OPTIONS__MY.AUDIT__PATH", "out")
    text = (
        "sources: {i: {type: kafka, topic: t}, j.k: {type: kafka, topic: t}}\n"
        "sinks: {s: {type: print, from: i}, t: {type: print, from: j.k}}\n"
    )
    data = read(tmp_path, text).data
    assert data["plugins"] == [str(tmp_path / "f.py")]
    assert data["side_outputs"] == {
        "my_audit_i": {"type": "my.audit", "from": "i", "path": "out"},
        "my_audit_j_k": {"type": "my.audit", "from": "j_k", "path": "out"},
    }


def test_operators_of_256_bits(tmp_path: Path) -> None:
    def sql(*nodes: str) -> str:
        part = "".join(nodes)
        pipeline = read(tmp_path, HEAD + part + TAIL)
        assert messages(pipeline.errors) == []
        return str(pipeline.data["transforms"]["n"]["sql"])

    made = "  m: {type: sql, primary_key: k, sql: 'SELECT k, to_u256(a) AS big, b FROM i'}\n"
    rest = "  o: {type: sql, primary_key: k, sql: 'SELECT *, big * 2 AS twice FROM m'}\n"
    query = "  n: {{type: sql, primary_key: k, sql: 'SELECT k, {} AS r FROM o'}}\n"
    for text, expected in (
        ("big + b * 2", "u256_add(big, b * 2L)"),
        ("o.big * big - twice", "u256_sub(u256_mul(o.big, big), twice)"),
        ("b + 1", "b + 1"),
        ("(big + 1) / 2", "u256_div((u256_add(big, 1)), 2)"),
        ("((big + 1) * 2 - 3) % 5 = 1",
         "u256_compare(u256_mod((u256_sub(u256_mul((u256_add(big, 1)), 2), 3)), 5), 1) = 0"),
        ("big NOT BETWEEN twice AND b + 1 OR b BETWEEN 1 AND 2",
         "NOT (u256_compare(big, twice) >= 0 AND u256_compare(big, b + 1) <= 0) "
         "OR b BETWEEN 1 AND 2"),
        ("big >= twice AND b < 2", "u256_compare(big, twice) >= 0 AND b < 2"),
        ("i256_neg(to_i256(b)) <> 1", "i256_compare(i256_neg(to_i256(b)), 1) <> 0"),
    ):  # fmt: skip
        assert sql(made, rest, query.format(text)) == f"SELECT k, {expected} AS r, _gs_op FROM o"


def test_functions_without_a_counterpart(tmp_path: Path) -> None:
    for call, hint in (
        ("_gs_json_objects_to_clickhouse_tuples(a, b)", "concat"),
        ("array_struct_field(a, b)", "a text in quotes"),
    ):
        node = f"  n: {{type: sql, primary_key: k, sql: 'SELECT k, {call} FROM i'}}\n"
        (error,) = read(tmp_path, HEAD + node + TAIL).errors
        assert error.code == "unknown-function" and hint in str(error.hint)


def test_tables_that_other_programs_fill(tmp_path: Path) -> None:
    table = "  d: {{type: dynamic_table, backend_type: {}, backend_entity_name: e}}\n"
    check = '  n: {type: sql, primary_key: k, sql: "SELECT k FROM i WHERE '
    check += "dynamic_table_check('d', k)\"}\n"
    for backend in ("postgres", "InMemory"):
        pipeline = read(tmp_path, HEAD + table.format(backend) + check + TAIL)
        assert pipeline.data["transforms"]["d"]["sql"].endswith("FROM i WHERE false")
    other = "  n: {type: sql, primary_key: k, sql: SELECT k FROM i}\n"
    unused = read(tmp_path, HEAD + table.format("InMemory") + other + TAIL)
    assert "no query fills or checks" in str(unused.warnings[0])
