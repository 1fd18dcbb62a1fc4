"""The verbs that look at files and at what is installed, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.cli.main import main
from penstock.engine.spark_session.memory import Memory
from penstock.runtime import session
from penstock.templates import read_template, template_names

PIPELINE = """
name: shop
sources:
  orders: {type: memory, rows: [{id: 1}], schema: id BIGINT}
sinks:
  out: {type: memory, from: orders}
"""
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err and "error[bug]" not in err
        return code, out, err

    return run


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shop.yaml"
    path.write_text(PIPELINE)
    return path


@pytest.mark.slow
def test_list_has_all_kinds(said: Said) -> None:
    found = json.loads(said("list", "--json")[1])
    kinds = {"sources", "transforms", "sinks", "formats", "side_outputs"}
    assert kinds | {"plugins", "broken_plugins"} == set(found)
    files = next(each for each in found["sources"] if each["type"] == "files")
    assert files["installed"] and "replay" in files["capabilities"]
    assert "dedupe" in said("list")[1]


def test_describe_shows_options_and_an_example(said: Said) -> None:
    code, out, _ = said("describe", "source", "files")
    assert code == 0
    assert "(required)" in out and "options of every source" in out and "  type: files" in out
    described = json.loads(said("describe", "sources", "files", "--json")[1])
    assert described["options"][0]["name"] == "path" and described["shared_options"]
    kafka = json.loads(said("describe", "sink", "kafka", "--json")[1])
    assert kafka["capabilities"]["exactly_once"] == "delivery: exactly_once"
    assert kafka["capabilities"]["upsert"] is None


def test_describe_shows_what_is_promised(said: Said) -> None:
    assert "\nguarantee: exactly once\n" in said("describe", "source", "files")[1]
    out = said("describe", "source", "mqtt")[1]
    lines = [line[:6] for line in out.splitlines() if line.startswith("qos: ")]
    assert lines == ["qos: 0", "qos: 1", "qos: 2"] and "PUBACK" in out and "never" in out
    (promised,) = json.loads(said("describe", "sink", "rabbitmq", "--json")[1])["guarantees"]
    assert promised["acknowledges"] == "the broker has confirmed each message"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["describe", "sourc", "files"], 'did you mean "source"?'),
        (["describe", "files"], "penstock describe source files"),
        (["describe", "sink"], "Add one of blackhole, clickhouse, delta"),
        (["describe", "source", "csv"], 'Use "csv" as a format.'),
        (["describe", "source", "fles"], 'did you mean "files"?'),
        (["new"], "Add one of generate, files, sql, nexmark, kafka, clicks, changes, plugin."),
        (["new", "file"], 'did you mean "files"?'),
        (["new", "sql", "--output", "nowhere/a.yaml"], "cannot write"),
        (["check", "nothere.yaml"], "the file nothere.yaml does not exist"),
        (["explain", "nothere.yaml"], "the file nothere.yaml does not exist"),
        (["inspect"], "penstock inspect FILE NODE"),
        (["inspect", "shop.yaml"], "Add one of orders, out."),
        (["inspect", "shop.yaml", "order"], 'did you mean "orders"?'),
        (["inspect", "shop.yaml", "orders", "--rows", "0"], "--rows: expected at least 1, found 0"),
        (["dead", "show"], "List the ids with penstock dead list FILE."),
        (["dead", "show", "shop.yaml", "f00"], "List the IDs with penstock dead list."),
        (["dead", "list", "shop.yaml", "--node", "order"], 'did you mean "orders"?'),
        (["dead", "replay", "shop.yaml", "--code", "x"], 'no dead letter with code "x"'),
    ],
)
@pytest.mark.usefixtures("shop")
def test_an_error_has_a_hint(said: Said, words: list[str], message: str) -> None:
    code, out, err = said(*words)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.slow
def test_schema_knows_the_components(said: Said) -> None:
    schema = json.loads(said("schema")[1])
    assert "source.files" in schema["$defs"]


def test_check_is_calm_when_all_is_well(said: Said, shop: Path) -> None:
    code, out, err = said("check", shop, "--level", "static")
    assert (code, out, err) == (0, "shop: no errors (1 source, 0 transforms, 1 sink)\n", "")
    assert [path.name for path in shop.parent.iterdir()] == ["shop.yaml"]


def test_check_reports_all_errors(said: Said, shop: Path) -> None:
    shop.write_text(PIPELINE.replace("from: orders", "from: order") + "colour: red\n")
    code, out, err = said("check", shop, "--level", "static")
    assert (code, out) == (2, "")
    assert 'did you mean "orders"?' in err and "colour" in err
    assert err.rstrip().endswith("2 errors")


def test_check_reports_the_place_as_json(said: Said, shop: Path) -> None:
    shop.write_text(PIPELINE.replace("from: orders", "from: order"))
    code, out, _ = said("check", shop, "--level", "static", "--json")
    found: dict[str, Any] = json.loads(out)
    assert code == 2 and not found["ok"] and found["nodes"] == {}
    (error,) = found["errors"]
    assert error["line"] == 6 and error["file"].endswith("shop.yaml") and error["hint"]


def test_check_lists_the_nodes_as_json(said: Said, shop: Path) -> None:
    found = json.loads(said("check", shop, "--level", "static", "--json")[1])
    assert found["ok"] and found["nodes"]["out"]["kind"] == "sink"
    columns = [{"name": "id", "type": "BIGINT"}]
    assert found["nodes"]["orders"] == {
        "kind": "source", "type": "memory", "columns": columns, "rows": None,
    }  # fmt: skip


def test_explain_without_spark(said: Said, shop: Path) -> None:
    code, out, _ = said("explain", shop, "--static")
    assert code == 0
    assert "shop: bounded" in out and "out: exactly once" in out
    found = json.loads(said("explain", shop, "--static", "--json")[1])
    assert found["queries"][0]["sinks"] == ["out"]


@pytest.mark.parametrize(
    ("options", "memory", "store"),
    [
        ((), "3 GiB for Spark (auto: 12 GiB of 16 GiB are available)", "memory"),
        (("--set", "runtime.memory=600m"), "600 MiB for Spark", "RocksDB"),
    ],
)
def test_explain_shows_the_heap_and_the_state_store(
    said: Said,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    memory: str,
    store: str,
) -> None:
    machine = Memory(16 * 2**30, 12 * 2**30)
    monkeypatch.setattr(Memory, "read", classmethod(lambda cls: machine))
    monkeypatch.setattr(session, "cores", lambda: 2)
    out = said("explain", shop, "--static", *options)[1]
    assert f"memory: {memory}\n" in out
    assert f"state of transforms in {store})" in out


def test_explain_draws(said: Said, shop: Path) -> None:
    out = said("explain", shop, "--mermaid")[1]
    assert out.startswith("flowchart LR\n") and "  orders --> out\n" in out


def test_dead_is_empty_before_a_run(said: Said, shop: Path) -> None:
    assert said("dead", "list", shop)[1] == "shop: 0 dead letters\n"
    empty = json.loads(said("dead", "list", shop, "--json")[1])
    assert empty == {"total": 0, "counts": [], "letters": []}
    assert [path.name for path in shop.parent.iterdir()] == ["shop.yaml"]


def test_dead_letters_may_be_elsewhere(said: Said, shop: Path) -> None:
    shop.write_text(PIPELINE + "dead_letter: {type: blackhole}\n")
    assert "to its dead_letter sink (type: blackhole)" in said("dead", "list", shop)[2]


@pytest.mark.parametrize("kind", template_names())
def test_a_new_pipeline_is_right(said: Said, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mine.yaml"
    assert said("new", kind, "--output", path)[0] == 0
    assert app.plan(path).spec.tests and not app.plan(path).warnings
    assert "PIPELINE.yaml" not in path.read_text()
    assert "PIPELINE.yaml" in read_template(kind)
    assert said("new", kind)[1].startswith("# ")


def test_new_overwrites_only_by_force(said: Said, shop: Path) -> None:
    code, _, err = said("new", "sql", "--output", shop)
    assert code == 2 and "--force" in err and shop.read_text() == PIPELINE
    assert said("new", "sql", "--output", shop, "--force")[0] == 0
    assert shop.read_text() != PIPELINE
