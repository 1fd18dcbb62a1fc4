"""Texts of errors, as users of the library read them in a traceback."""

from __future__ import annotations

import pytest

from penstock.core.error_codec import EncodedError, decode, encode_errors
from penstock.core.errors import PenstockError, PlanError, SpecError, Transient, ValidationErrors
from penstock.core.location import Location


def test_text_of_an_error_is_its_message() -> None:
    error = PenstockError("the disk is full", code="disk-full", hint="Free disk space.")
    assert str(error) == "the disk is full"


def test_text_of_several_errors_has_their_locations() -> None:
    errors = [
        SpecError('unknown key "x"', where=Location("shop.yaml", 3, 1)),
        PlanError("no sinks"),
    ]
    assert str(ValidationErrors(errors)) == '2 errors; no sinks; shop.yaml:3:1: unknown key "x"'


def test_text_of_an_encoded_error_is_a_report() -> None:
    @encode_errors
    def connect() -> None:
        raise Transient("could not connect to a:1", code="refused", hint="Start the server.")

    with pytest.raises(EncodedError) as caught:
        connect()
    report = str(caught.value).splitlines()
    assert report[:2] == [
        "error[refused]: could not connect to a:1", "  hint: Start the server.",
    ]  # fmt: skip
    decoded = decode(str(caught.value))
    assert isinstance(decoded, Transient)
    assert decoded.fields() == {
        "message": "could not connect to a:1", "code": "refused", "detail": None,
        "hint": "Start the server.",
    }  # fmt: skip
