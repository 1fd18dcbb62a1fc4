"""Payloads that end the process of their decoder."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.connectors.memory import MemorySource
from penstock.connectors.memory.source import MemorySourceConfig
from penstock.core.errors import DecodeError, Transient
from penstock.formats.json import JsonConfig
from penstock.formats.json.plain import PlainJson
from penstock.sdk import Decoded, Format
from penstock.sdk.decoding import decode_in_fork, decode_record_in_fork
from penstock.sdk.forked import CRASHED, iterate_forked

COLUMNS = pa.schema([("n", pa.int64())])


class Fragile(PlainJson):
    """JSON whose decoder ends the process for some payloads."""

    def decode(self, payloads: pa.BinaryArray, schema: pa.Schema) -> Decoded:
        for payload in payloads.drop_null().to_pylist():
            if payload == b"abort":
                os.abort()
            if payload == b"exit":
                os._exit(7)
            if payload == b"stop":
                os.kill(os.getpid(), signal.SIGTERM)
            if payload == b"bug":
                raise ZeroDivisionError
            if payload == b"outage":
                raise Transient("could not connect")
        return super().decode(payloads, schema)


def array(payloads: list[bytes | None]) -> pa.BinaryArray:
    return pa.array(payloads, pa.binary())


@pytest.mark.slow
def test_payload_that_crashes_the_decoder_is_a_failure() -> None:
    payloads = [b'{"n":%d}' % n for n in range(200)]
    payloads[17], payloads[18], payloads[150] = b"abort", b"exit", b"x"
    found = decode_in_fork(Fragile(JsonConfig()), array(payloads), COLUMNS)
    expected = [n for n in range(200) if n not in (17, 18, 150)]
    assert found.rows.column("n").to_pylist() == expected
    assert found.index is not None and found.index.to_pylist() == expected
    assert [(each.index, each.text, each.error.code) for each in found.failures] == [
        (17, b"abort", CRASHED), (18, b"exit", CRASHED), (150, b"x", "not-json"),
    ]  # fmt: skip
    assert "SIGABRT" in found.failures[0].error.message
    assert "exit code 7" in found.failures[1].error.message


@pytest.mark.parametrize("framing", ["none", "lines"])
def test_isolated_decoding_equals_decoding(framing: str) -> None:
    format_: Format[JsonConfig] = Fragile(JsonConfig.model_validate({"framing": framing}))
    payloads = array([b'{"n":1}\n{"n":2}\nx', None, b'{"n":3}', b"", b"y\ny"])
    isolated = decode_in_fork(format_, payloads, COLUMNS)
    direct = format_.rows(payloads, COLUMNS)
    assert isolated.rows.equals(direct.rows)
    assert direct.index is not None and isolated.index is not None
    assert isolated.index.equals(direct.index)
    assert str(isolated.failures) == str(direct.failures)
    assert decode_in_fork(format_, array([]), COLUMNS).rows.num_rows == 0


@pytest.mark.slow
def test_errors_other_than_of_a_record_are_raised() -> None:
    format_ = Fragile(JsonConfig())
    for payload, error in (
        (b"bug", ZeroDivisionError),
        (b"outage", Transient),
        (b"stop", Transient),
    ):
        with pytest.raises(error):
            decode_in_fork(format_, array([b'{"n":1}', payload]), COLUMNS)


def test_fork_ends_with_its_iteration() -> None:
    def numbers() -> Iterator[int]:
        number = 0
        while True:
            yield os.getpid() if number == 0 else number
            number += 1

    iteration = iterate_forked(numbers)
    pid = next(iteration)
    assert pid != os.getpid()
    iteration.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_error_that_cannot_be_pickled_keeps_its_text() -> None:
    class Local(Exception):
        pass

    def fail() -> Iterator[int]:
        yield 1
        raise Local("text")

    iteration = iterate_forked(fail)
    assert next(iteration) == 1
    with pytest.raises(RuntimeError, match="Local: text"):
        next(iteration)


def test_dead_letter_is_decoded_again_in_isolation() -> None:
    source = MemorySource(MemorySourceConfig(payloads=[]))
    source.format, source.columns = Fragile(JsonConfig()), COLUMNS
    assert decode_record_in_fork(lambda: source.decode(b'{"n":1}', "o", 1)).to_pylist() == [
        {"n": 1}
    ]
    with pytest.raises(DecodeError) as raised:
        decode_record_in_fork(lambda: source.decode(b"abort", "o", 1))
    assert raised.value.code == CRASHED
