"""Commands whose standard input or output is closed, full, or a pipe without a reader."""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from command_line import CommandLine
from penstock.core.errors import OutputClosed, OutputError, PenstockError
from penstock.core.standard_streams import _ClosedInput, _Output, output_errors
from penstock.engine.spark_session import session
from penstock.engine.spark_session.descriptors import require_descriptors
from penstock.engine.spark_session.jvm_log import log_settings

PENSTOCK = f"'{sys.executable}' -m penstock"
DESCRIBE = "describe source impulse"
"""A command that prints a table and imports few modules."""
CLOSED = (
    "error[output]: cannot write to standard output: it is closed\n"
    "  hint: Redirect the output, as in > /dev/null.\n"
)
FULL = "error[output]: cannot write to standard output: No space left on device\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "errors"),
    [
        (f"{DESCRIBE} >&-", 1, CLOSED),
        (f"{DESCRIBE} --json >&-", 1, CLOSED),
        ("--help >&-", 1, CLOSED),
        (f"{DESCRIBE} >/dev/full", 1, FULL),
        ("nope 2>&-", 2, ""),
        (f"{DESCRIBE} >&- 2>&- <&-", 1, ""),
    ],
)
def test_a_stream_that_cannot_be_written(command: str, code: int, errors: str) -> None:
    done = subprocess.run(
        f"{PENSTOCK} {command}", shell=True, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr, done.stdout) == (code, errors, "")


@pytest.mark.slow
@pytest.mark.parametrize("words", [DESCRIBE, "schema", "nope 2>&1"])
def test_a_pipe_without_a_reader_ends_a_command_quietly(words: str) -> None:
    script = f"{{ sleep 0.3; {PENSTOCK} {words}; echo $? >&3; }} 3>&2 | true"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stderr == "141\n"


@pytest.mark.slow
def test_closed_standard_input_of_the_shell() -> None:
    done = subprocess.run(
        f"{PENSTOCK} sql <&-", shell=True, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == (
        "error[input-closed]: standard input is closed\n  hint: Redirect the input, as in < FILE.\n"
    )
    assert done.returncode == 2


def test_the_shell_reads_standard_input_before_it_starts_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = io.TextIOWrapper(io.BufferedReader(_ClosedInput(0, closefd=False)))
    monkeypatch.setattr("sys.stdin", closed)
    started: list[object] = []
    monkeypatch.setattr(session, "session", started.append)
    done = CommandLine()(tmp_path, "sql")
    assert started == []
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2, "error[input-closed]: standard input is closed"
    )  # fmt: skip


def test_errors_of_writing() -> None:
    with pytest.raises(OutputClosed) as closed, output_errors():
        raise BrokenPipeError
    assert closed.value.policy.exit_code == 141
    with pytest.raises(OutputError, match="No space left on device"), output_errors():
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("unbuffered", [True, False])
def test_all_bytes_of_a_write_reach_a_pipe(blocks: bool, unbuffered: bool) -> None:
    read, write = os.pipe()
    os.set_blocking(write, blocks)
    stream = _text_stream(write, unbuffered)
    received: list[bytes] = []

    def receive() -> None:
        while data := os.read(read, 4096):
            received.append(data)

    thread = threading.Thread(target=receive)
    thread.start()
    stream.write("x" * 500_000)
    stream.flush()
    os.close(write)
    thread.join()
    os.close(read)
    assert b"".join(received) == b"x" * 500_000


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("unbuffered", [True, False])
def test_the_reader_of_a_pipe_ends_during_a_write(blocks: bool, unbuffered: bool) -> None:
    """The system call has written a part, and returns its size without an error."""
    read, write = os.pipe()
    os.set_blocking(write, blocks)
    stream = _text_stream(write, unbuffered)

    def receive_a_part() -> None:
        os.read(read, 4096)
        os.close(read)

    thread = threading.Thread(target=receive_a_part)
    thread.start()
    with pytest.raises(OutputClosed, match="the reader of standard output has ended"):
        stream.write("x" * 500_000)
    thread.join()
    discarded = os.open(os.devnull, os.O_WRONLY)
    os.dup2(discarded, write)
    stream.flush()
    os.close(discarded)
    os.close(write)


def _text_stream(descriptor: int, unbuffered: bool) -> io.TextIOWrapper:
    raw = _Output(descriptor, "stdout")
    buffer = raw if unbuffered else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, "utf-8", write_through=unbuffered)  # type: ignore[arg-type]


def test_a_low_limit_of_open_files_is_raised_or_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limit: limits.append(limit))
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 4096))
    require_descriptors()
    assert limits == [(1024, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 256))
    with pytest.raises(PenstockError, match="at least 1,024 open files, found 256"):
        require_descriptors()


def test_path_of_the_log_in_properties() -> None:
    text = log_settings(Path("/a\nb/c$d/e\\f/spark.log"))
    assert "appender.file.fileName = /a\\nb/c$$d/e\\\\f/spark.log\n" in text
