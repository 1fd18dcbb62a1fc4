"""Files of ArkFlow: recognition, warnings, unsupported parts, and errors in terms of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.app import plan
from penstock.core.errors import ValidationErrors
from penstock.spec.front_end import choose
from penstock.spec.load import load
from penstock.spec.parsed import ParsedPipeline
from penstock.spec.yaml.writer import convert

YAML = """\
streams:
  - id: first
    input: {type: memory, messages: ['{"a": 1}']}
    pipeline: {processors: [{type: json_to_arrow}]}
    output: {type: stdout}
  - input: {type: memory, messages: []}
    pipeline:
      processors:
    output: {type: drop}
    error_output: {type: stdout}
"""
JSON = """\
{"streams": [{"input": {"type": "memory", "messages": []}, "pipeline": {"processors": []},
 "output": {"type": "drop"}}]}
"""
TOML = """\
[[streams]]
[streams.input]
type = "memory"
messages = ["a"]
[streams.pipeline]
processors = [{type = "json_to_arrow"}]
[streams.output]
type = "stdout"
append_newlines = true
"""


def parse(tmp_path: Path, text: str, name: str = "x.yaml") -> ParsedPipeline:
    file = tmp_path / name
    file.write_text(text)
    return load([file], env={"TOKEN": "secret-token", "ARKFLOW_SECRET_KEY": "k"})


def stream(input: str = "{type: memory, messages: []}", output: str = "{type: drop}") -> str:
    return f"streams:\n- input: {input}\n  pipeline: {{processors: []}}\n  output: {output}\n"


def test_streams_have_nodes_of_their_names(tmp_path: Path) -> None:
    pipeline = parse(tmp_path, YAML)
    assert list(pipeline.errors) == []
    assert list(pipeline.data["sources"]) == ["first_input", "stream_1_input"]
    assert list(pipeline.data["sinks"]) == [
        "first_output", "stream_1_output", "stream_1_error_output",
    ]  # fmt: skip


def test_json(tmp_path: Path) -> None:
    assert list(parse(tmp_path, JSON, "x.json").data["sinks"]) == ["output"]


def test_toml_has_positions(tmp_path: Path) -> None:
    pipeline = parse(tmp_path, TOML, "x.toml")
    assert pipeline.data["sources"]["input"]["payloads"] == ["a"]
    (warning,) = pipeline.warnings
    assert warning.where is not None
    assert (warning.where.line, warning.where.text) == (9, "append_newlines = true")
    assert warning.hint == 'did you mean "append_newline"?'


def test_invalid_toml(tmp_path: Path) -> None:
    (error,) = parse(tmp_path, "[[streams]]\nx = \n", "x.toml").errors
    assert error.where is not None and error.where.line == 2


def test_files_of_penstock_are_not_recognized(tmp_path: Path) -> None:
    text = "sources:\n  a: {type: memory, rows: []}\nstreams: 1\n"
    assert "streams" in parse(tmp_path, text).data


def test_unknown_options_are_errors_if_strict(tmp_path: Path) -> None:
    text = stream(output="{type: stdout, colour: red}")
    (warning,) = parse(tmp_path, text).warnings
    assert warning.code == "unknown-option"
    choose(None, strict=True)
    try:
        pipeline = parse(tmp_path, text)
    finally:
        choose(None, strict=False)
    (error,) = pipeline.errors
    assert (error.code, str(error)) == (
        "unknown-option", 'output stdout has no option "colour"',
    )  # fmt: skip
    assert list(pipeline.warnings) == []


def test_the_dialect_may_be_chosen(tmp_path: Path) -> None:
    choose("arkflow", strict=False)
    try:
        pipeline = parse(tmp_path, stream(), "x.conf")
    finally:
        choose(None, strict=False)
    assert list(pipeline.data["sinks"]) == ["output"]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (stream(input="{type: kafak}"), 'there is no input "kafak"', 2),
        (stream(input="{type: kafka, brokers: [a]}"), 'input kafka requires "topics"', 2),
        (stream(input="{type: generate, context: x, interval: 5}"), "expects a duration", 2),
        (stream(input="{type: memory, messages: 5}"), "expects a list", 2),
        (stream(input="{type: file, path: x.csv, input_type: csv}"), "expects a map", 2),
        (stream(output="{type: qdrant, url: x}"), "models and vector stores", 4),
        (stream(output="{type: http, url: x, method: FETCH}"), "expects one of", 4),
        (
            stream(
                "{type: websocket, url: 'ws://h'}",
                "{type: mongodb, uri: 'mongodb://h', database: d, collection: c}",
            ),
            "columns",
            4,
        ),
        ("jobs: []\nstreams: []\n", "the file has no streams", 2),
        ("streams: []\n", "the file has no streams", 1),
        ("streams:\n- input: {type: drop}\n", 'the stream requires "pipeline"', 2),
    ],
)
def test_errors_are_in_the_file(tmp_path: Path, text: str, message: str, line: int) -> None:
    errors = parse(tmp_path, text).errors
    found = [error for error in errors if message in str(error)]
    assert len(found) == 1, [str(error) for error in errors]
    assert found[0].where is not None
    assert found[0].where.line == line


JOB = """\
streams: []
jobs:
  - id: first
    version: 1
    operators:
      - {id: sink, kind: sink}
      - {id: source, kind: source}
      - id: text
        kind: map
        config: {type: arrow_to_json}
    edges:
      - {id: e1, from: source, to: text, partitioned: false}
      - {id: e2, from: text, to: sink}
    sources:
      - operator_id: source
        input_type: memory
        config: {messages: ['{"a": 1}']}
        codec: {type: json}
        time: {mode: event_time, timestamp_field: a}
    sinks:
      - {operator_id: sink, output_type: stdout}
    checkpoint: {interval_ms: 30000}
"""


def test_a_job_is_a_stream(tmp_path: Path) -> None:
    pipeline = parse(tmp_path, JOB)
    assert list(pipeline.errors) == []
    assert pipeline.data["sources"]["input"]["payloads"] == ['{"a": 1}']
    node = pipeline.data["transforms"]["pipeline"]
    assert [step["type"] for step in node["steps"]] == ["encode"]
    assert node["inputs"][""]["decode"] == {"type": "json"}
    assert "print" in pipeline.data["sinks"]["output"]["type"]


@pytest.mark.parametrize(
    ("before", "after", "message", "line"),
    [
        ("kind: map", "kind: join", "a job has no operator join here", 9),
        ("kind: map", "kind: mapp", 'there is no operator "mapp"', 9),
        ("to: sink", "to: sinc", 'there is no operator "sinc"', 13),
        ("from: text", "from: source", "an operator has several edges", 13),
        ("type: arrow_to_json", "typ: x", "expected the type of the processor", 10),
        ("operator_id: sink", "operator_id: text", "end with one of its sinks", 5),
        ("    sources:", "    sorces:", 'the job requires "sources"', 3),
        ("input_type: memory", "input_type: milvus", "models and vector stores", 16),
    ],
)  # fmt: skip
def test_errors_of_jobs(tmp_path: Path, before: str, after: str, message: str, line: int) -> None:
    errors = parse(tmp_path, JOB.replace(before, after)).errors
    found = [error for error in errors if message in str(error)]
    assert found, [str(error) for error in errors]
    assert found[0].where is not None and found[0].where.line == line


def test_a_stream_with_an_error_has_no_error_of_penstock(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(stream(input="{type: kafka, brokers: [a]}"))
    with pytest.raises(ValidationErrors) as raised:
        plan(tmp_path / "x.yaml")
    assert [error.message for error in raised.value.errors] == [
        'input kafka requires "topics"', 'input kafka requires "consumer_group"',
    ]  # fmt: skip


def test_accepted_options_without_effect_say_so(tmp_path: Path) -> None:
    text = "logging: {level: info}\nhealth_check: {api_token: t}\n" + stream()
    messages = [str(warning) for warning in parse(tmp_path, text).warnings]
    assert messages == [
        '"level" of logging has no effect: run with --log json and --log-level LEVEL',
        '"api_token" of health_check has no effect: Penstock has no control interface over HTTP',
    ]


def test_health_check_is_endpoints_of_the_run(tmp_path: Path) -> None:
    text = "health_check: {address: ' 0.0.0.0:1 ', health_path: /h}\n" + stream()
    assert parse(tmp_path, text).data["runtime"]["endpoints"] == {
        "listen": "0.0.0.0:1", "health": "/h", "ready": "/readiness", "live": "/liveness",
    }  # fmt: skip
    assert "runtime" not in parse(tmp_path, "health_check: {enabled: false}\n" + stream()).data


def test_variables_and_secrets(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("from-file\n")
    headers = (
        f"{{a: '${{TOKEN}}', b: '${{secret:KEY}}', c: '${{file:{tmp_path}/f}}', d: '${{x y}}'}}"
    )
    pipeline = parse(
        tmp_path, stream(output=f"{{type: http, url: 'http://h', headers: {headers}}}")
    )
    assert list(pipeline.errors) == []
    assert pipeline.data["sinks"]["output"]["headers"] == {
        "a": "secret-token", "b": "k", "c": "from-file", "d": "${x y}",
        "Content-Type": "application/json",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("buffer", "time", "window"),
    [
        ("{type: tumbling_window, interval: 5s}", "5000000us", {}),
        ("{type: memory, capacity: 3, timeout: 2s}", "2000000us", {"rows": 3}),
        ("{type: sliding_window, window_size: 3, slide_size: 1, interval: 1s}", "30000000us",
         {"size": 3, "slide": 1}),
        ("{type: session_window, gap: 2s}", "30000000us", {}),
        ("{type: session_window, gap: 1s}", "30000000us", {"size": 1, "slide": 1}),
    ],
)  # fmt: skip
def test_batches_of_a_generator_are_its_windows(
    tmp_path: Path, buffer: str, time: str, window: dict[str, int]
) -> None:
    text = stream("{type: generate, context: x, interval: 1s, count: 30}")
    pipeline = parse(tmp_path, text.replace("  output:", f"  buffer: {buffer}\n  output:"))
    assert pipeline.data["sources"]["input"]["batch_time"] == time
    assert pipeline.data["transforms"]["pipeline"]["window"] == window
    assert "batch" not in pipeline.data["sinks"]["output"]


def test_a_session_that_never_ends_is_a_warning(tmp_path: Path) -> None:
    text = stream("{type: generate, context: x, interval: 1s}")
    for gap, count in (("2s", 1), ("1s", 0)):
        buffer = f"  buffer: {{type: session_window, gap: {gap}}}\n  output:"
        assert len(parse(tmp_path, text.replace("  output:", buffer)).warnings) == count


@pytest.mark.parametrize(
    ("buffer", "window", "batch"),
    [
        ("{type: session_window, gap: 2s}", {}, {"gap": "2000000us"}),
        ("{type: sliding_window, window_size: 3, slide_size: 1, interval: 1s}",
         {"size": 3, "slide": 1, "rest": "keep"}, {"interval": "1000000us"}),
        ("{type: tumbling_window, interval: 1s}", {}, {"interval": "1000000us"}),
        ("{type: memory, capacity: 5, timeout: 1s}", {"rows": 5},
         {"interval": "1000000us", "min_records": 5}),
    ],
)  # fmt: skip
def test_windows_over_inputs_without_end(
    tmp_path: Path, buffer: str, window: dict[str, Any], batch: dict[str, str | int]
) -> None:
    text = stream("{type: websocket, url: 'ws://h'}")
    pipeline = parse(tmp_path, text.replace("  output:", f"  buffer: {buffer}\n  output:"))
    assert list(pipeline.warnings) == []
    assert pipeline.data["transforms"]["pipeline"]["window"] == window
    assert pipeline.data["sinks"]["output"]["batch"] == batch


def test_converted_file_is_a_pipeline_of_the_same_nodes(tmp_path: Path) -> None:
    pipeline = parse(tmp_path, YAML)
    converted = tmp_path / "converted.yaml"
    converted.write_text(convert([str(tmp_path / "x.yaml")]))
    assert load([converted]).data == pipeline.data


def test_a_misspelled_required_option_is_the_hint(tmp_path: Path) -> None:
    text = stream(input="{type: kafka, broker: [a], topics: [t], consumer_group: g}")
    (error,) = parse(tmp_path, text).errors
    assert (error.message, error.hint) == ('input kafka requires "brokers"', 'rename "broker"')


def test_the_messages_of_a_generator_fill_a_buffer(tmp_path: Path) -> None:
    text = stream("{type: generate, context: x, interval: 1s, batch_size: 4}")
    buffer = "  buffer: {type: memory, capacity: 10, timeout: 9s}\n  output:"
    pipeline = parse(tmp_path, text.replace("  output:", buffer))
    assert pipeline.data["sinks"]["output"]["batch"]["min_records"] == 3


def test_one_line_of_yaml(tmp_path: Path) -> None:
    text = "{streams: [{input: {type: memory, messages: []}, pipeline: {}, output: {type: drop}}]}"
    assert list(parse(tmp_path, text).data["sinks"]) == ["output"]


def test_a_file_that_is_not_yaml_has_no_further_errors(tmp_path: Path) -> None:
    errors = parse(tmp_path, "streams:\n  - input: {}\n   output: {}\n").errors
    assert [error.code for error in errors] == ["invalid-yaml"]
