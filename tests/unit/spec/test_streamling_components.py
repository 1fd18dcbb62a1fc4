"""Components of Streamling as nodes of Penstock."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import streamling_examples as examples
from ruamel.yaml import YAML

from penstock.spec.dialects.options.reading import Findings
from penstock.spec.dialects.streamling import plugins, sinks, sources, transforms
from penstock.spec.dialects.streamling.application import SETTINGS, find_setting
from penstock.spec.dialects.streamling.front_end import StreamlingFrontEnd
from penstock.spec.dialects.streamling.functions import FUNCTIONS

SECRET = {
    "STREAMLING__HTTP_SECRET_HEADER__API_KEY": "X-Key",
    "STREAMLING__HTTP_SECRET_VALUE__API_KEY": "made-up-key",
}
INPUT = "sources: {i: {type: kafka, topic: t, primary_key: k}}"
SINK = "sinks: {s: {type: blackhole, from: i}}"
Nodes = Mapping[str, Mapping[str, Any]]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("STREAMLING__")]:
        monkeypatch.delenv(name)
    for name, value in SECRET.items():
        monkeypatch.setenv(name, value)


def read(tmp_path: Path, *parts: str) -> dict[str, dict[str, Any]]:
    """The nodes of a file by section and name, as `sinks.n`, without their errors."""
    found: dict[str, Any] = {section: {} for section in ("sources", "transforms", "sinks")}
    yaml = YAML(typ="safe")
    for part in parts:
        found |= yaml.load(part)
    file = tmp_path / "x.yaml"
    with file.open("w") as stream:
        yaml.dump(found, stream)
    document = StreamlingFrontEnd().read_document(str(file))
    assert [str(error) for error in document.errors] == []
    data = document.root.data()
    return {
        f"{section}.{name}": node
        for section in ("sources", "transforms", "sinks")
        for name, node in data.get(section, {}).items()
    }


def assert_nodes(found: Nodes, expected: Nodes) -> None:
    for name, options in expected.items():
        assert name in found, sorted(found)
        assert {key: found[name].get(key) for key in options} == options


@pytest.mark.parametrize(("text", "expected"), examples.SOURCES)
def test_source(tmp_path: Path, text: str, expected: Nodes) -> None:
    found = read(tmp_path, f"sources: {{n: {text}}}", "sinks: {s: {type: blackhole, from: n}}")
    assert_nodes(found, expected)


@pytest.mark.parametrize(("text", "expected"), examples.TRANSFORMS)
def test_transform(tmp_path: Path, text: str, expected: Nodes) -> None:
    part = "sinks: {s: {type: blackhole, from: n}, i: {type: blackhole, from: i}}"
    assert_nodes(read(tmp_path, INPUT, f"transforms: {{n: {text}}}", part), expected)


@pytest.mark.parametrize(("text", "expected"), examples.SINKS)
def test_sink(tmp_path: Path, text: str, expected: Nodes) -> None:
    assert_nodes(read(tmp_path, INPUT, f"sinks: {{n: {text}}}"), expected)


@pytest.mark.parametrize(("variables", "text", "expected"), examples.SETTINGS)
def test_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str], text: str,
    expected: Nodes,
) -> None:  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(f"STREAMLING__{name}", value)
        assert find_setting(name.replace("__", ".").lower()) is not None
    assert_nodes(read(tmp_path, INPUT, SINK, text), expected)


def call(name: str, *arguments: object) -> object:
    """The result of a function of SQL."""
    function = FUNCTIONS[name]
    args, code = function["args"], str(function["code"])
    assert isinstance(args, Mapping)
    made: dict[str, Any] = {}
    exec(f"def f({', '.join(args)}):\n{textwrap.indent(code, ' ')}", made)
    return made["f"](*arguments)


def test_functions(tmp_path: Path) -> None:
    largest, least = str(2**256 - 1), str(-(2**255))
    assert call("to_u256", largest) == largest
    assert call("u256_sub", largest, "1") == str(2**256 - 2)
    assert call("u256_add", "1", "2") == "3"
    assert call("i256_mul", "-3", "5") == "-15"
    assert [call("i256_div", "-7", "2"), call("i256_mod", "-7", "2")] == ["-3", "-1"]
    assert [call("u256_div", "7", "2"), call("u256_mod", "7", "2")] == ["3", "1"]
    for name, *arguments in (
        ("to_u256", "-1"), ("to_u256", "x"), ("u256_add", largest, "1"), ("i256_neg", least),
        ("u256_sub", "1", "2"), ("u256_div", "1", "0"), ("i256_abs", least),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call(name, *arguments)
    assert call("to_int64", str(2**64 - 1)) == -1
    assert call("to_int64", str(2**64)) is None
    assert call("_gs_conv_base", "ff", 16, 2) == "11111111"
    assert call("_gs_conv_base", "zz", 16, 2) is None
    assert call("_gs_from_base58", "112") == b"\0\0\1"
    assert call("_gs_hex_to_byte", "0x0aFF") == b"\x0a\xff"
    assert call("_gs_byte_to_hex", b"\x0a\xff") == "0aff"
    assert call("reverse_bytes32", b"ab") == b"ba"
    assert UUID(str(call("uuid7"))).version == 7
    file = tmp_path / "x.yaml"
    file.write_text(
        f"{INPUT}\ntransforms: {{n: {{type: sql, primary_key: k, sql: 'SELECT U256_ADD(k, 1) k, "
        f"u256_to_string(k) FROM i'}}}}\nsinks: {{s: {{type: print, from: n}}}}\n"
    )
    data = StreamlingFrontEnd().read_document(str(file)).root.data()
    assert [*data["functions"]] == ["u256_to_string", "u256_add"]


def test_every_component_has_an_example() -> None:
    used: dict[str, set[str]] = {}
    for text, _ in (*examples.SOURCES, *examples.TRANSFORMS, *examples.SINKS):
        _add_options(YAML(typ="safe").load(text), used)
    known = {**sources.SOURCES, **transforms.TRANSFORMS, **sinks.SINKS, **plugins.PLUGINS}
    for group in (sources.SOURCES, transforms.TRANSFORMS, sinks.SINKS, plugins.PLUGINS):
        for type_, options in group.items():
            needed = {
                option.name for option in options.options
                if not (option.unneeded or option.unsupported or option.name == "*")
            }  # fmt: skip
            common = {"batch_size", "batch_flush_interval", "telemetry"}
            assert needed - common <= used.get(type_, set()), type_
    assert {*known} <= {*used}


def _add_options(node: Mapping[str, Any], used: dict[str, set[str]]) -> None:
    names = {*node, *node.get("options", {})}
    used[node["type"]] = used.get(node["type"], set()) | names


def _options() -> Iterator[tuple[str, str, str]]:
    groups = (("source", sources.SOURCES), ("transform", transforms.TRANSFORMS),
              ("sink", sinks.SINKS))  # fmt: skip
    for kind, group in groups:
        for type_, options in group.items():
            for option in options.options:
                if option.unneeded or option.unsupported:
                    yield kind, type_, option.name


def test_options_without_effect() -> None:
    from penstock.spec.dialects.options.reading import Reading
    from penstock.spec.yaml.parse import parse_document

    known = {"source": sources.SOURCES, "transform": transforms.TRANSFORMS, "sink": sinks.SINKS}
    for kind, type_, name in _options():
        node = parse_document(f"type: {type_}\n{name}: 1\n").root
        findings = Findings()
        Reading(node, f"{kind} x", known[kind][type_], findings)
        reported = [error.where for error in (*findings.errors, *findings.warnings)]
        assert any(where is not None and where.line == 2 for where in reported), (type_, name)


def test_all_settings_are_found() -> None:
    for section, options in SETTINGS.items():
        for name in options.names:
            path = f"{section}.{name}".replace("*", "x").strip(".")
            assert find_setting(path) is not None, path
    assert find_setting("kafka_source.broker") is None
    assert find_setting("plugin.mysql_sink.password") is not None
    assert find_setting("plugin.pathh") is None
    assert find_setting("state_backend.sqlite.database_path") is not None
