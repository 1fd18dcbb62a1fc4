"""Texts with asterisks in place of the secrets that a process has read."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from penstock.core import log
from penstock.core.error_codec import decode, encode
from penstock.core.error_report import format_error
from penstock.core.errors import PlanError, Transient
from penstock.core.known_secrets import conceal, remember_secret
from penstock.core.location import Location
from penstock.engine.spark_session.jvm_log import log_settings
from penstock.spec.documents.secrets import reveal

SECRET = "hunter2topsecret"


def test_a_secret_is_concealed_after_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "PW").write_text(f"{SECRET}\n")
    assert conceal(f"a {SECRET} b") == f"a {SECRET} b"
    assert reveal("file/PW", {"PENSTOCK_SECRETS": str(tmp_path)}) == SECRET
    assert conceal(f"a {SECRET} b{SECRET}") == "a ********** b**********"


@pytest.mark.parametrize("secret", ["", "a", "abc", "    ", "\n\n\n\n"])
def test_a_short_secret_leaves_texts_alone(secret: str) -> None:
    remember_secret(secret)
    text = "abc a    b\n\n\n\nabc"
    assert conceal(text) == text


@pytest.mark.parametrize(
    "form",
    [
        "it's \"é\\ü\"\nsecond line", r"it\'s \"é\\ü\"", "second line", r"\"\u00e9\\\u00fc\"",
        "it''s", "it%27s%20%22",
    ],
)  # fmt: skip
def test_other_forms_of_a_secret_are_concealed(form: str) -> None:
    remember_secret('it\'s "é\\ü"\nsecond line')
    remember_secret("it's")
    remember_secret("it's \"")
    remember_secret('"é\\ü"')
    remaining = conceal(form).replace("*", "")
    assert not set(remaining) & set("itséü2lc")


def test_the_longest_secret_is_concealed_as_a_whole() -> None:
    remember_secret("hunter")
    remember_secret("hunter2topsecret")
    assert conceal("hunter2topsecret") == "*" * 10


def test_an_error_conceals_secrets_in_all_texts() -> None:
    remember_secret(SECRET)
    where = Location("a.yaml", 1, 18, 3, f"password is {SECRET}, abc")
    error = PlanError(f"bad {SECRET}", detail=f"d {SECRET}", hint=f"h {SECRET}", where=where)
    for text in (format_error(error), str(error), encode(error), str(error.fields())):
        assert "hunter2" not in text
    assert format_error(error).splitlines()[3] == f" 1 | password is {'*' * len(SECRET)}, abc"
    assert "hunter2" not in format_error(ValueError(SECRET))


def test_an_error_of_a_worker_is_concealed_in_the_driver() -> None:
    text = encode(Transient(f"bad {SECRET}"))
    remember_secret(SECRET)
    error = decode(text)
    assert error is not None and error.message == "bad **********"


@pytest.mark.parametrize("format_", ["console", "json"])
def test_a_log_conceals_secrets(format_: log.Format) -> None:
    remember_secret(SECRET)
    output = io.StringIO()
    with redirect_stderr(output):
        log.make(format_).warning(f"a {SECRET}", error=f"b {SECRET}", count=1)
    assert "hunter2" not in output.getvalue() and "**********" in output.getvalue()


def test_the_log_of_spark_replaces_secrets(tmp_path: Path) -> None:
    pattern = "appender.file.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSSX}{UTC} %p %c{1}: "
    assert f"{pattern}%m%n%ex\n" in log_settings(tmp_path / "spark.log")
    remember_secret("a}$😀")
    escaped = r"\\u0061\\u007d\\u0024\\ud83d\\ude00"
    settings = log_settings(tmp_path / "spark.log")
    assert f"{pattern}%replace{{%m%n%ex}}{{" in settings
    assert escaped in settings


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("found ftp://ann:hunter22@host/x", "found ftp://ann:********@host/x"),
        ("a://u:p@h, b://v:qq@h", "a://u:*@h, b://v:**@h"),
        ("a://u:${PASSWORD}@h", "a://u:${PASSWORD}@h"),
        ("http://host:80/a@b", "http://host:80/a@b"),
    ],
)
def test_passwords_in_urls_are_concealed(text: str, shown: str) -> None:
    """Also of an error, and although no secret has been read."""
    assert conceal(text) == shown == PlanError(text).message
