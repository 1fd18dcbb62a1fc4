"""Graphs of stream-data-processor: their components, their chains, and errors in their words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import graph_examples as examples
import pytest
from ruamel.yaml import YAML

from penstock.app import plan
from penstock.core.errors import SpecError
from penstock.spec.dialects.stream_data_processor import consumers, handlers, parsers, producers
from penstock.spec.front_end import choose
from penstock.spec.load import load
from penstock.spec.parsed import ParsedPipeline

CSV = "{type: csv, schema: {time: timestamp, k: string, i: int64, v: double}}"
GRAPHITE = "{type: graphite, template_strings: [host.measurement.field], fields: {v: double}}"
GRAPH = """\
producers:
  a: {{type: file, path: x, parser: {parser}}}
nodes:
  n: {{from: a, handlers: [{handlers}]}}
consumers:
  out: {{type: print, from: n}}
"""


def parse(tmp_path: Path, text: str) -> ParsedPipeline:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    return load([file])


def read(tmp_path: Path, text: str) -> dict[str, Any]:
    pipeline = parse(tmp_path, text)
    assert [str(error) for error in pipeline.errors] == []
    return pipeline.data


def chain(tmp_path: Path, handlers: str, parser: str = CSV) -> dict[str, Any]:
    data = read(tmp_path, GRAPH.format(parser=parser, handlers=handlers))
    transform: dict[str, Any] = data["transforms"]["n"]
    return transform


def assert_has(options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {name: options.get(name) for name in expected} == expected


@pytest.mark.parametrize(("text", "expected"), examples.HANDLERS)
def test_handler(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    window = "{type: window, period: 9, every: 9}"
    found = chain(tmp_path, f"{{type: map, expressions: {{m: '1'}}}}, {window}, {text}")
    assert_has(found["handlers"][2], expected)
    assert plan(tmp_path / "x.yaml")


@pytest.mark.parametrize(("text", "expected"), examples.PRODUCERS)
def test_producer(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    text = text.replace("PARSER", examples.PARSER)
    data = read(tmp_path, f"producers: {{a: {text}}}\nconsumers: {{o: {{type: print, from: a}}}}")
    assert_has(data["sources"]["a"], expected)
    assert data["sinks"]["o"]["from"] == "a"
    assert plan(tmp_path / "x.yaml")


@pytest.mark.parametrize(("text", "expected"), examples.PARSERS)
def test_parser(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    data = read(tmp_path, GRAPH.format(parser=text, handlers="{type: map, expressions: {a: '1'}}"))
    assert_has(data["sources"]["a"], expected)


@pytest.mark.parametrize(("text", "expected"), examples.CONSUMERS)
def test_consumer(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    graph = GRAPH.format(parser=CSV, handlers="{type: filter, conditions: v > 1}")
    data = read(tmp_path, graph.replace("{type: print, from: n}", text))
    assert_has(data["sinks"]["out"], expected)
    assert plan(tmp_path / "x.yaml")


def test_every_option_has_an_example() -> None:
    for components, shown in (
        (producers.PRODUCERS, examples.PRODUCERS), (parsers.PARSERS, examples.PARSERS),
        (consumers.CONSUMERS, examples.CONSUMERS), (handlers.HANDLERS, examples.HANDLERS),
    ):  # fmt: skip
        texts = [text.replace("PARSER", examples.PARSER) for text, _ in shown]
        maps = [each for text in texts for each in YAML(typ="safe").load(f"[{text}]")]
        known = {(each["type"], name) for each in maps for name in each}
        needed = {
            (type_, option.name)
            for type_, options in components.items()
            for option in options.options
        }
        assert needed - known == set()


GROUP = "{type: group, columns: [k]}"
AGGREGATE = "{type: aggregate, aggregate_columns: {v: {mean: m}}}"
FILTER = "{type: filter, conditions: v > 1}"
WINDOW = "{type: window, period: 9, every: 9}"


def kinds(transform: dict[str, Any]) -> list[str]:
    return [each["type"] for each in transform["handlers"]]


def test_a_leading_group_divides_the_transform(tmp_path: Path) -> None:
    found = chain(tmp_path, f"{FILTER}, {GROUP}, {WINDOW}, {AGGREGATE}")
    assert (found["by"], found["time"], found.get("batch")) == (["k"], "time", None)
    assert kinds(found) == ["filter", "window", "aggregate"]
    found = chain(tmp_path, f"{WINDOW}, {GROUP}, {AGGREGATE}")
    assert "by" not in found and kinds(found) == ["window", "group", "aggregate"]


def test_rows_of_one_time_are_a_batch(tmp_path: Path) -> None:
    assert chain(tmp_path, AGGREGATE)["batch"] == ["time"]
    assert "batch" not in chain(tmp_path, f"{WINDOW}, {AGGREGATE}")
    no_wait = "{type: derivative, cases: {d: v}, no_wait: true}"
    assert chain(tmp_path, no_wait)["batch"] == ["time"]
    text = GRAPH.format(parser=CSV, handlers=AGGREGATE).replace("path: x", "path: x, batch: [i]")
    assert read(tmp_path, text)["transforms"]["n"]["batch"] == ["i"]


def test_lines_of_one_time_and_tags_are_one_row(tmp_path: Path) -> None:
    group = "{type: group, columns: [host]}"
    found = chain(tmp_path, f"{group}, {AGGREGATE}", GRAPHITE)
    assert found["handlers"][0] == {"type": "join", "on": ["measurement", "host"]}
    assert (found["by"], found["batch"], found["tags"]) == (["host"], ["time"], ["host"])
    found = chain(tmp_path, f"{GROUP.replace('k', 'v')}, {AGGREGATE}", GRAPHITE)
    assert "by" not in found and kinds(found) == ["join", "group", "aggregate"]
    data = read(
        tmp_path, GRAPH.format(parser=GRAPHITE, handlers=FILTER).replace("from: n", "from: a")
    )
    assert kinds(data["transforms"]["a_rows"]) == ["join"]


TWO = f"""\
producers:
  a: {{type: file, path: x, parser: {CSV}}}
  b: {{type: file, path: y, parser: {CSV}}}
nodes:
  both: {{from: [a, b], handlers: [{WINDOW}]}}
  joined: {{from: both, handlers: [{{type: join, join_on_columns: [k], tolerance: 2}}]}}
  unread: {{from: joined, handlers: [{FILTER}]}}
consumers:
  windows: {{type: file, from: both, path: w}}
  rows: {{type: tcp, from: joined, endpoints: ['h:1', 'h:2']}}
"""


def test_a_consumer_reads_all_nodes_above(tmp_path: Path) -> None:
    pipeline = parse(tmp_path, TWO)
    assert [str(error) for error in pipeline.errors] == []
    transforms = pipeline.data["transforms"]
    assert kinds(transforms["both"]) == ["window"] and transforms["both"]["from"] == ["a", "b"]
    assert kinds(transforms["joined"]) == ["window", "join"]
    assert [*pipeline.data["sinks"]] == ["windows", "rows_1", "rows_2"]
    (warning,) = pipeline.warnings
    assert (warning.code, warning.where and warning.where.line) == ("unused-transform", 7)
    assert plan(tmp_path / "x.yaml").nodes["joined"].stateful


def test_an_unknown_option_is_a_warning_or_an_error(tmp_path: Path) -> None:
    text = GRAPH.format(parser=CSV, handlers="{type: window, period: 9, evry: 1, every: 9}")
    (warning,) = parse(tmp_path, text).warnings
    assert warning.hint == 'did you mean "every"?'
    choose(None, strict=True)
    try:
        with pytest.raises(SpecError, match="evry"):
            plan(tmp_path / "x.yaml")
    finally:
        choose(None, strict=False)
