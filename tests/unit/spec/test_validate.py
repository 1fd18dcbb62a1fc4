"""The shape of a pipeline, and pydantic's errors in our words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from penstock.core.errors import Mistakes, PenstockError, report
from penstock.core.paths import Text, UserPath
from penstock.core.units import Duration
from penstock.spec.document import Document, parse
from penstock.spec.interpolate import Interpolation
from penstock.spec.nodes import Mapping
from penstock.spec.validate import fit, open_pipeline, translate, validate

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
    pipeline = validate(parse(SHOP, "x.yaml"))
    assert pipeline.name == "shop"
    clicks = pipeline.spec.sources["clicks"]
    assert clicks.watermark is not None and clicks.watermark.delay == 5400
    assert pipeline.spec.sinks["out"].inputs == ["big"]
    assert pipeline.warnings == ()


def test_options_know_their_directory(tmp_path: Path) -> None:
    pipeline = validate(parse(SHOP, "x.yaml", tmp_path))
    path = pipeline.spec.sources["clicks"].options["path"]
    assert isinstance(path, Text) and path.base == tmp_path


@pytest.mark.parametrize(
    ("file", "name"),
    [("dir/my shop.v2.yaml", "my_shop"), ("<stdin>", "stdin"), ("---.yaml", "pipeline")],
)
def test_name_of_the_file(file: str, name: str) -> None:
    assert validate(parse(SHOP.replace("name: shop", ""), file)).name == name


def test_load_and_validate_together(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(SHOP.replace("data/a.csv", "'${NONE}'").replace("from: big", "from: bg"))
    with pytest.raises(Mistakes) as caught:
        open_pipeline([path], env={})
    assert [each.code for each in caught.value.errors] == ["unset-variable", "unknown-input"]


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


def told(options: str, env: dict[str, str] | None = None) -> list[PenstockError]:
    document, data = node(options, env or {})
    made, mistakes = fit(Options, data, document, ("sources", "a"), known=["watermark"])
    assert (made is None) == bool(mistakes)
    return list(mistakes)


def node(options: str, env: dict[str, str]) -> tuple[Document, dict[str, object]]:
    read = parse(f"sources:\n  a: {{type: kafka, {options}}}\n", "x.yaml")
    root = Interpolation(env).node(read.root)
    assert isinstance(root, Mapping)
    data = root.data()["sources"]["a"]
    del data["type"]
    return Document(root, read.files), data


SUBJECT = 'source "a" (type: kafka)'


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ("topics: x", f'{SUBJECT} has no option "topics"', 'did you mean "topic"?'),
        ("", f'{SUBJECT} needs "topic"', "topic: The topic to read"),
        ("topic: x, watermrk: 1", f'{SUBJECT} has no option "watermrk"', 'mean "watermark"?'),
        ("topic: 5", f'"topic" of {SUBJECT} expects text, not 5', 'quote it: "5"'),
        ("topic: x, port: x", f'"port" of {SUBJECT} expects a whole number, not "x"', None),
        ("topic: x, port: 70000", f'"port" of {SUBJECT} expects at most 65535, not 70000', None),
        (
            "topic: x, start: erliest",
            f'"start" of {SUBJECT} expects earliest, latest or a whole number, not "erliest"',
            'did you mean "earliest"?',
        ),
        (
            "topic: x, tls: {caa: a}",
            f'"tls" of {SUBJECT} has no option "caa"',
            'did you mean "ca"?',
        ),
        ("topic: x, tls: []", f'"tls" of {SUBJECT} expects true or false, or a map, not an', None),
        ("topic: x, brokers: []", f'"brokers" of {SUBJECT} expects at least one entry, not', None),
        ("topic: x, brokers: a", f'"brokers" of {SUBJECT} expects a list, not "a"', "list: [a]"),
        ("topic: x, wait: 5", f'"wait" of {SUBJECT} expects a duration with a unit', None),
        (
            "topic: x, password: hunter2",
            f"\"password\" of {SUBJECT}: 'hunter2' is too easily",
            None,
        ),
    ],
)
def test_translated(options: str, message: str, hint: str | None) -> None:
    (mistake,) = told(options)
    assert mistake.message.startswith(message)
    assert (mistake.hint is None) if hint is None else (hint in (mistake.hint or ""))


def test_values_from_outside_are_not_echoed() -> None:
    (mistake,) = told("topic: x, password: '${PW}'", {"PW": "hunter2"})
    assert "hunter2" not in report(mistake)
    assert "${PW}" in mistake.message
    (mistake,) = told("topic: x, password: 'a${PW}b'", {"PW": "hunter2"})
    assert "hunter2" not in report(mistake)


def test_a_number_from_outside_is_text_where_text_is_expected() -> None:
    document, data = read_plain({"topic": "${T}", "password": "${PW}", "port": "${PORT}"})
    made, mistakes = fit(Options, data, document, ("sources", "a"))
    assert not mistakes and made is not None
    assert (made.topic, made.password, made.port) == ("2024", "007", 80)


def read_plain(options: dict[str, str]) -> tuple[Document, dict[str, object]]:
    lines = "".join(f"    {key}: {value}\n" for key, value in options.items())
    read = parse(f"sources:\n  a:\n{lines}")
    root = Interpolation({"T": "2024", "PW": "007", "PORT": "80"}).node(read.root)
    assert isinstance(root, Mapping)
    return Document(root, read.files), root.data()["sources"]["a"]


def test_subject_of_a_part() -> None:
    text = "sources: {a: {format: {type: csv, topc: x}}}\n"
    document = parse(text)
    with pytest.raises(ValidationError) as caught:
        Options.model_validate({"topc": "x"})
    route = ("sources", "a", "format")
    (mistake,) = translate(caught.value, document, route, Options, "format csv")
    assert mistake.message == 'format csv has no option "topc"'
    assert mistake.where is not None and mistake.where.column == 35


def test_wrong_data_that_is_not_in_the_document() -> None:
    document = parse("sources: {a: {type: x}}\n")
    made, mistakes = fit(Options, {"topic": 5, "tls": {"ca": 5}}, document, ("sources", "a"))
    assert made is None and len(mistakes) == 2
    assert {each.where.line for each in mistakes if each.where} == {1}


def test_relative_path_is_of_the_file_that_says_it(tmp_path: Path) -> None:
    document = parse("sources: {a: {topic: x, tls: {ca: ca.pem}}}\n", base=tmp_path)
    made, _ = fit(Options, document.at(("sources", "a")).data(), document, ("sources", "a"))
    assert made is not None and isinstance(made.tls, Tls)
    assert made.tls.ca == str(tmp_path / "ca.pem")


def test_unknown_inputs_wait_for_misnamed_sections() -> None:
    text = "sources: {a: {type: t}}\ntransform: {b: {type: t}}\nsinks: {o: {type: t, from: b}}\n"
    with pytest.raises(PenstockError) as caught:
        validate(parse(text))
    assert caught.value.code == "unknown-key"
