"""Several files, includes, `--set` and connections."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.core.error_report import format_error
from penstock.core.errors import SpecError, ValidationErrors
from penstock.spec.documents.reading import load
from penstock.spec.front_end import companion_test_file
from penstock.spec.load import load as load_pipeline
from penstock.spec.validate import validate

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_files_are_merged(write: Write) -> None:
    a = write("a.yaml", "name: a\nsources: {x: {type: t}}\nruntime: {spark: {m: 1}}\ntests: [1]\n")
    b = write("b.yaml", "sources: {y: {type: t}}\nruntime: {spark: {n: 2}}\ntests: [2]\nsinks:\n")
    document = load([a, b], env={})
    assert document.root.data() == {
        "name": "a",
        "sources": {"x": {"type": "t"}, "y": {"type": "t"}},
        "runtime": {"spark": {"m": 1, "n": 2}},
        "tests": [1, 2],
        "sinks": None,
    }
    assert document.files == (str(a), str(b))


def test_includes_are_relative_to_their_file_and_read_once(write: Write) -> None:
    main = write(
        "x.yaml", "include: ['parts/*.yaml', parts/../deep/d.yaml]\nsources: {a: {type: t}}\n"
    )
    write("parts/b.yaml", "include: ../deep/d.yaml\nsources: {b: {type: t, path: p.csv}}\n")
    deep = write("deep/d.yaml", "sources: {d: {type: t}}\n")
    document = load([main], env={})
    assert document.names("sources") == ["a", "b", "d"]
    assert document.require_node(("sources", "b", "path")).base == deep.parent.parent / "parts"
    assert "include" not in document.root.data()


def test_a_pattern_does_not_include_its_own_file(write: Write) -> None:
    main = write("x.yaml", "include: '*.yaml'\nsources: {a: {type: t}}\n")
    write("y.yaml", "sources: {b: {type: t}}\n")
    assert load([main], env={}).names("sources") == ["a", "b"]


def test_include_from_the_environment(write: Write) -> None:
    main = write("x.yaml", "include: ${WHICH}.yaml\n")
    write("y.yaml", "name: y\n")
    assert load([main], env={"WHICH": "y"}).root.data() == {"name": "y"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sources.a.path=y.csv", {"type": "t", "path": "y.csv"}),
        ("sources.a.n=5", {"type": "t", "path": "x", "n": 5}),
        ("sources.a.n='5'", {"type": "t", "path": "x", "n": "5"}),
        ("sources.a.n=[1, {b: c}]", {"type": "t", "path": "x", "n": [1, {"b": "c"}]}),
        ("sources.a.n.m=true", {"type": "t", "path": "x", "n": {"m": True}}),
        ("sources.a.n=", {"type": "t", "path": "x", "n": ""}),
        ("sources.a.n=a=b", {"type": "t", "path": "x", "n": "a=b"}),
        ('sources.a."n.m"=1', {"type": "t", "path": "x", "n.m": 1}),
        ("sources.a={type: u}", {"type": "u"}),
        ("sources.a.path=${TOPIC}", {"type": "t", "path": "clicks"}),
    ],
)
def test_set(write: Write, text: str, expected: object) -> None:
    path = write("x.yaml", "sources: {a: {type: t, path: x}}\n")
    document = load([path], overrides=[text], env={"TOPIC": "clicks"})
    assert document.require_node(("sources", "a")).data() == expected


def test_set_shows_its_text(write: Write) -> None:
    path = write("x.yaml", "sources: {a: {type: t, path: x}}\n")
    where = load([path], overrides={"sources.a.path": "y.csv"}, env={}).value(
        ("sources", "a", "path")
    )
    assert (str(where), where.text, where.length) == ("--set:1:16", "sources.a.path=y.csv", 5)


def test_set_replaces_before_variables_are_read(write: Write) -> None:
    path = write("x.yaml", "name: ${NOT_SET}\n")
    assert load([path], overrides=["name=x"], env={}).root.data() == {"name": "x"}


def test_set_of_a_spark_setting(write: Write) -> None:
    path = write("x.yaml", "name: x\n")
    document = load([path], overrides=["runtime.spark.spark.sql.x=4"], env={})
    assert document.root.data()["runtime"] == {"spark": {"spark.sql.x": 4}}


def test_set_of_a_list_item(write: Write) -> None:
    path = write("x.yaml", "tests: [{name: a}, {name: b}]\n")
    document = load([path], overrides=["tests.1.name=c"], env={})
    assert document.root.data() == {"tests": [{"name": "a"}, {"name": "c"}]}


def test_connection_gives_defaults_with_their_own_places(write: Write) -> None:
    path = write("x.yaml", "include: c/c.yaml\nsources: {a: {connection: p, topic: x, user: me}}\n")
    other = write("c/c.yaml", "connections: {p: {type: kafka, user: you, cert: ca.pem}}\n")
    document = load([path], env={})
    assert document.require_node(("sources", "a")).data() == {
        "connection": "p",
        "topic": "x",
        "user": "me",
        "type": "kafka",
        "cert": "ca.pem",
    }
    assert document.require_node(("sources", "a", "cert")).base == other.parent
    assert document.key(("sources", "a", "cert")).file == str(other)


def test_connection_of_the_dead_letters(write: Write) -> None:
    path = write("x.yaml", "connections: {p: {type: kafka}}\ndead_letter: {connection: p}\n")
    assert load([path], env={}).root.data()["dead_letter"]["type"] == "kafka"


def test_companion_test_file(write: Write) -> None:
    path = write("x.yaml", "name: x\ntests: [{name: a}]\n")
    tests = write("x.test.yaml", "tests: [{name: b}]\n")
    assert companion_test_file(path) == tests
    assert load([path, tests], env={}).root.data()["tests"] == [{"name": "a"}, {"name": "b"}]


def test_standard_input_includes_from_here(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("y.yaml", "name: y\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"include: y.yaml\n")))
    assert load(["-"], env={}).root.data() == {"name": "y"}


def test_errors_of_several_files_are_reported_together(write: Write) -> None:
    a, b = write("a.yaml", "a: [1\n"), write("b.yaml", "b: 1\nb: 2\n")
    with pytest.raises(ValidationErrors) as caught:
        load([a, b], env={})
    assert {each.code for each in caught.value.errors} == {"invalid-yaml", "duplicate-key"}


def test_a_cycle_is_reported_at_the_include_that_closes_it(write: Write) -> None:
    path = write("a.yaml", "include: b.yaml\n")
    write("b.yaml", "include: a.yaml\n")
    with pytest.raises(SpecError, match="the includes contain a cycle") as caught:
        load([path], env={})
    assert "a.yaml -> b.yaml -> a.yaml" in format_error(caught.value)


def test_a_named_pipe_is_not_included(write: Write, tmp_path: Path) -> None:
    main = write("x.yaml", "include: part.yaml\nsources: {a: {type: t}}\n")
    os.mkfifo(tmp_path / "part.yaml")
    with pytest.raises(SpecError, match="expected a regular file, found a named pipe"):
        load([main], env={})


def test_doubled_keys_are_reported_with_all_other_errors(write: Write) -> None:
    file = write(
        "x.yaml",
        "sources:\n  orders: {type: t}\n  orders: {type: t}\n"
        "sinks: {out: {type: print, from: ordrs}}\nruntime: {nope: 1}\n",
    )
    _, errors = validate(load_pipeline([file], env={}))
    codes = sorted(error.code for error in errors)
    assert codes == ["duplicate-key", "unknown-input", "unknown-option"]
