"""Components of ArkFlow as nodes of Penstock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import arkflow_examples as examples
import pytest
from ruamel.yaml import YAML

from penstock.spec.dialects.arkflow import inputs, outputs, processors
from penstock.spec.dialects.arkflow.buffers import BUFFERS
from penstock.spec.dialects.arkflow.codecs import CODECS
from penstock.spec.load import load
from penstock.spec.parsed import ParsedPipeline

STREAM = """\
streams:
  - input: {input}
    {buffer}
    temporary:
      - {{type: redis, name: r, mode: {{type: single, url: 'redis://h'}}, codec: {{type: json}},
         redis_type: {{type: string}}}}
    pipeline: {{thread_num: 2, processors: [{processors}]}}
    output: {output}
"""


def parse(
    tmp_path: Path, *, input: str = "{type: memory, messages: []}", output: str = "{type: drop}",
    processors: str = "", buffer: str = "",
) -> ParsedPipeline:  # fmt: skip
    file = tmp_path / "x.yaml"
    buffer = f"buffer: {buffer}" if buffer else ""
    text = STREAM.format(input=input, output=output, processors=processors, buffer=buffer)
    file.write_text(text)
    pipeline = load([file])
    assert [str(error) for error in pipeline.errors] == []
    return pipeline


def assert_has(options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert {name: options.get(name) for name in expected} == expected


@pytest.mark.parametrize(("text", "expected"), examples.INPUTS)
def test_input(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    sources = parse(tmp_path, input=text).data["sources"]
    assert_has(next(iter(sources.values())), expected)


@pytest.mark.quick(1)
@pytest.mark.parametrize(("text", "expected"), examples.OUTPUTS)
def test_output(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    query = "{type: sql, query: 'SELECT a, b, c, d, at FROM flow'}"
    pipeline = parse(tmp_path, output=text, processors=query)
    assert_has(pipeline.data["sinks"]["output"], expected)


@pytest.mark.parametrize(("text", "expected"), examples.PROCESSORS)
def test_processor(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    pipeline = parse(tmp_path, processors=text)
    assert_has(pipeline.data["transforms"]["pipeline"]["steps"][0], expected)


@pytest.mark.parametrize(("text", "expected"), examples.BUFFERS)
def test_buffer(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    pipeline = parse(tmp_path, buffer=text)
    assert_has(pipeline.data["transforms"]["pipeline"]["window"], expected)
    time = "gap" if "session" in text else "interval"
    capacity = {"min_records": expected["rows"]} if "rows" in expected else {}
    assert pipeline.data["sinks"]["output"]["batch"] == {time: "2000000us", **capacity}


@pytest.mark.parametrize(("text", "expected"), examples.CODECS)
def test_codec(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    pipeline = parse(
        tmp_path, input=f"{{type: memory, messages: [], codec: {text}}}",
        output=f"{{type: stdout, codec: {text}}}",
    )  # fmt: skip
    pipeline_node = pipeline.data["transforms"]["pipeline"]
    assert_has(pipeline_node["inputs"][""]["decode"], expected)
    assert_has(pipeline_node["output"]["encode"], expected)


def keys(texts: list[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    """Yields the type and each option of components."""
    for text, _ in texts:
        data = YAML(typ="safe").load(text)
        yield from ((data["type"], name) for name in data)


@pytest.mark.parametrize(
    ("components", "shown"),
    [
        (inputs.INPUTS, examples.INPUTS),
        (outputs.OUTPUTS, examples.OUTPUTS),
        (processors.PROCESSORS, examples.PROCESSORS),
        (BUFFERS, examples.BUFFERS),
        (CODECS, examples.CODECS),
    ],
)
def test_every_option_has_an_example(
    components: dict[str, Any], shown: list[tuple[str, dict[str, Any]]]
) -> None:
    known = set(keys(shown))
    missing = [
        (type_, option.name)
        for type_, options in components.items()
        for option in options.options
        if not option.unsupported
        and option.name not in {"type", "name", "codec"}
        and (type_, option.name) not in known
    ]
    assert missing == []
