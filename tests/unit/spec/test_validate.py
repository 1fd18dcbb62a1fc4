"""The shape of a pipeline, and pydantic's errors in the words of Penstock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError, raise_all
from penstock.core.paths import ConfigStr, UserPath
from penstock.core.units import Duration
from penstock.spec.documents.interpolate import Interpolator
from penstock.spec.load import load
from penstock.spec.model_validation import format_errors, validate_model
from penstock.spec.parsed import ParsedPipeline
from penstock.spec.tree.document import Document
from penstock.spec.tree.nodes import MappingNode
from penstock.spec.validate import Pipeline, validate
from penstock.spec.yaml.parse import parse_document


def validate_document(document: Document) -> Pipeline:
    pipeline, errors = validate(ParsedPipeline(document.root.data(), document))
    raise_all(errors)
    assert pipeline is not None
    return pipeline


SHOP = """
name: shop
sources:
  clicks: {type: files, path: data/a.csv, watermark: {column: at, delay: 1h30m}}
transforms:
  big: {type: sql, sql: SELECT * FROM Clicks}
sinks:
  out: {type: print, from: big}
runtime:
tests:
"""


def test_pipeline() -> None:
    pipeline = validate_document(parse_document(SHOP, "x.yaml"))
    assert pipeline.name == "shop"
    clicks = pipeline.spec.sources["clicks"]
    assert clicks.watermark is not None and clicks.watermark.delay == 5400
    assert pipeline.spec.sinks["out"].inputs == ["big"]
    assert pipeline.warnings == ()


def test_options_know_their_directory(tmp_path: Path) -> None:
    pipeline = validate_document(parse_document(SHOP, "x.yaml", tmp_path))
    path = pipeline.spec.sources["clicks"].options["path"]
    assert isinstance(path, ConfigStr) and path.base == tmp_path


@pytest.mark.parametrize(
    ("file", "name"),
    [("dir/my shop.v2.yaml", "my_shop"), ("<stdin>", "stdin"), ("---.yaml", "pipeline")],
)
def test_name_of_the_file(file: str, name: str) -> None:
    assert validate_document(parse_document(SHOP.replace("name: shop", ""), file)).name == name


def test_load_and_validate_together(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(SHOP.replace("data/a.csv", "'${NONE}'").replace("from: big", "from: bg"))
    _, errors = validate(load([path], env={}))
    assert [each.code for each in errors] == ["unset-variable", "unknown-input"]


def _no_hunter(value: str) -> str:
    if "hunter" in value:
        raise ValueError(f"{value!r} is too easily guessed, as is {value.upper()[:0]}{value}")
    return value


class Tls(BaseModel):
    model_config = ConfigDict(extra="forbid")
    ca: UserPath


class Options(BaseModel):
    """Like the Config of a connector."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    topic: str
    """The topic to read. There is one."""
    port: int = Field(default=1, le=65535)
    wait: Duration = 1.0
    start: Literal["earliest", "latest"] | int = "earliest"
    password: Annotated[str, AfterValidator(_no_hunter)] = ""
    tls: bool | Tls = False
    brokers: list[str] = Field(default=[], min_length=1)


def errors_of(options: str, env: dict[str, str] | None = None) -> list[PenstockError]:
    document, data = node(options, env or {})
    made, errors = validate_model(Options, data, document, ("sources", "a"), known=["watermark"])
    assert (made is None) == bool(errors)
    return list(errors)


def node(options: str, env: dict[str, str]) -> tuple[Document, dict[str, object]]:
    parsed = parse_document(f"sources:\n  a: {{type: kafka, {options}}}\n", "x.yaml")
    root = Interpolator(env).node(parsed.root)
    assert isinstance(root, MappingNode)
    data = root.data()["sources"]["a"]
    del data["type"]
    return Document(root, parsed.files), data


SUBJECT = 'source "a" (type: kafka)'


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ("topics: x", f'{SUBJECT} has no option "topics"', 'did you mean "topic"?'),
        ("", f'{SUBJECT} needs "topic"', "topic: The topic to read"),
        ("topic: x, watermrk: 1", f'{SUBJECT} has no option "watermrk"', 'mean "watermark"?'),
        ("topic: 5", f'"topic" of {SUBJECT} expects text, found 5', 'put the value in quotes: "5"'),
        ("topic: x, port: x", f'"port" of {SUBJECT} expects a whole number, found "x"', None),
        ("topic: x, port: 70000", f'"port" of {SUBJECT} expects at most 65535, found 70000', None),
        (
            "topic: x, start: erliest",
            f'"start" of {SUBJECT} expects earliest, latest or a whole number, found "erliest"',
            'did you mean "earliest"?',
        ),
        (
            "topic: x, tls: {caa: a}",
            f'"tls" of {SUBJECT} has no option "caa"',
            'did you mean "ca"?',
        ),
        (
            "topic: x, tls: []",
            f'"tls" of {SUBJECT} expects true or false, or a map, found an',
            None,
        ),
        (
            "topic: x, brokers: []",
            f'"brokers" of {SUBJECT} expects at least one entry, found',
            None,
        ),
        ("topic: x, brokers: a", f'"brokers" of {SUBJECT} expects a list, found "a"', "list: [a]"),
        ("topic: x, wait: 5", f'"wait" of {SUBJECT} expects a duration with a unit', None),
        (
            "topic: x, password: hunter2",
            f"\"password\" of {SUBJECT}: 'hunter2' is too easily",
            None,
        ),
    ],
)
def test_translated(options: str, message: str, hint: str | None) -> None:
    (error,) = errors_of(options)
    assert error.message.startswith(message)
    assert (error.hint is None) if hint is None else (hint in (error.hint or ""))


def test_values_from_outside_are_not_echoed() -> None:
    (error,) = errors_of("topic: x, password: '${PW}'", {"PW": "hunter2"})
    assert "hunter2" not in format_error(error)
    assert "${PW}" in error.message
    (error,) = errors_of("topic: x, password: 'a${PW}b'", {"PW": "hunter2"})
    assert "hunter2" not in format_error(error)


def test_a_number_from_outside_is_text_where_text_is_expected() -> None:
    document, data = read_plain({"topic": "${T}", "password": "${PW}", "port": "${PORT}"})
    made, errors = validate_model(Options, data, document, ("sources", "a"))
    assert not errors and made is not None
    assert (made.topic, made.password, made.port) == ("2024", "007", 80)


def read_plain(options: dict[str, str]) -> tuple[Document, dict[str, object]]:
    lines = "".join(f"    {key}: {value}\n" for key, value in options.items())
    parsed = parse_document(f"sources:\n  a:\n{lines}")
    root = Interpolator({"T": "2024", "PW": "007", "PORT": "80"}).node(parsed.root)
    assert isinstance(root, MappingNode)
    return Document(root, parsed.files), root.data()["sources"]["a"]


def test_subject_of_a_part() -> None:
    text = "sources: {a: {format: {type: csv, topc: x}}}\n"
    document = parse_document(text)
    with pytest.raises(ValidationError) as caught:
        Options.model_validate({"topc": "x"})
    route = ("sources", "a", "format")
    (error,) = format_errors(caught.value, document, route, Options, "format csv")
    assert error.message == 'format csv has no option "topc"'
    assert error.where is not None and error.where.column == 35


def test_wrong_data_that_is_not_in_the_document() -> None:
    document = parse_document("sources: {a: {type: x}}\n")
    made, errors = validate_model(
        Options, {"topic": 5, "tls": {"ca": 5}}, document, ("sources", "a")
    )
    assert made is None and len(errors) == 2
    assert {each.where.line for each in errors if each.where} == {1}


def test_relative_path_is_of_the_file_that_says_it(tmp_path: Path) -> None:
    document = parse_document("sources: {a: {topic: x, tls: {ca: ca.pem}}}\n", base=tmp_path)
    made, _ = validate_model(
        Options, document.require_node(("sources", "a")).data(), document, ("sources", "a")
    )
    assert made is not None and isinstance(made.tls, Tls)
    assert made.tls.ca == str(tmp_path / "ca.pem")


def test_unknown_inputs_wait_for_misnamed_sections() -> None:
    text = "sources: {a: {type: t}}\ntransform: {b: {type: t}}\nsinks: {o: {type: t, from: b}}\n"
    with pytest.raises(PenstockError) as caught:
        validate_document(parse_document(text))
    assert caught.value.code == "unknown-key"
