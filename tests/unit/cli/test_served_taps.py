"""`penstock tap` over a server: rows, errors and ends of a tap."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from command_line import CommandLine
from penstock import app
from penstock.core.errors import Transient
from penstock.core.log import Silent
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.taps import run_taps
from penstock.runtime.taps.files import TapDirectory
from penstock.runtime.taps.run_taps import RunTaps
from penstock.server_client import ServerClient
from server_console import Console, wait_for
from web_console import listening

pytestmark = pytest.mark.slow
ROWS = pa.table({"id": [7, 8], "note": ["a", None]})


@pytest.fixture
def state(console: Console, pipeline_directory: Path) -> StateDirectory:
    """The state of a pipeline that runs."""
    console.post(f"pipelines/{console.id()}/start")
    console.await_health("running")
    return StateDirectory(pipeline_directory / "shop" / ".penstock" / "shop")


@pytest.fixture
def tapped(
    state: StateDirectory, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A run with a batch of two rows after another, and a batch whose rows could not be copied."""
    monkeypatch.setattr(run_taps, "PERIOD_SECONDS", 0.0)
    plan = app.plan(pipeline_directory / "shop" / "shop.yaml")
    taps, (query,), ended = RunTaps(plan, state.root, Silent()), plan.queries, threading.Event()

    def run() -> None:
        number = 0
        while not ended.wait(0.05):
            taps.poll()
            for node in taps.wanted(query):
                taps.pass_rows(query, number, node, ROWS)
                taps.miss(query, number + 1, node, ValueError("no plan"))
                number += 2

    thread = threading.Thread(target=run)
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.fixture
def address(console: Console) -> Iterator[str]:
    with listening(console) as url:
        yield url


def penstock(
    directory: Path, address: str, *words: str, **environment: str
) -> tuple[int, str, str]:
    """Runs `penstock tap` with the token of the server."""
    given = {"PENSTOCK_SERVER": address, **environment}
    done = CommandLine()(directory, "tap", *words, environment=given)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.usefixtures("tapped")
def test_rows_of_a_run(
    console: Console, state: StateDirectory, pipeline_directory: Path, address: str
) -> None:
    code, out, err = penstock(pipeline_directory, address, "shop", "orders", "--batches", "2")
    assert (code, [line.split() for line in out.splitlines()]) == (
        0, [["id", "note"], ["7", "a"], ["8"], ["7", "a"], ["8"]],
    )  # fmt: skip
    assert "no rows: ValueError: no plan" in err
    words = ("shop", "out", "--batches", "1", "--rows", "1", "--json", "--server", address)
    code, out, _ = penstock(pipeline_directory, "", *words)
    assert (code, json.loads(out)["rows"], json.loads(out)["query"]) == (0, [["7", "a"]], "orders")
    wait_for(lambda: not TapDirectory.all(state.root), lambda: "a tap has not ended")
    records = [each for each in console.get("audit") if each["action"] == "tap"]
    assert [each["facts"] for each in records] == [{"node": "out"}, {"node": "orders"}]


@pytest.mark.usefixtures("tapped")
def test_wrong_names_and_missing_rights(
    console: Console, pipeline_directory: Path, address: str
) -> None:
    code, _, err = penstock(pipeline_directory, address, "shpo", "orders")
    assert (code, 'did you mean "shop"?' in err) == (2, True)
    code, _, err = penstock(pipeline_directory, address, "shop", "ordres")
    assert code == 2
    assert 'error[unknown-node]: the run has no node "ordres"' in err
    assert 'did you mean "orders"?' in err
    for words in (["shop"], ["shop", ""], ["a", "b", "c"]):
        code, _, err = penstock(pipeline_directory, address, *words)
        assert (code, "the name of a pipeline of the server and" in err) == (2, True), words
    console.post("users", {"name": "eve", "rights": ["view"]}, status=201)
    token = console.server.parts.accounts.issue("eve", "token", "of a test")
    words = ["shop", "orders", "--timeout", "5"]
    code, out, err = penstock(pipeline_directory, address, *words, PENSTOCK_TOKEN=token)
    assert (code, out, "data" in err) == (3, "", True), err


def test_a_pipeline_that_does_not_run(
    console: Console, pipeline_directory: Path, address: str
) -> None:
    code, _, err = penstock(pipeline_directory, address, "shop", "orders")
    assert (code, "error[not-running]: the pipeline does not run" in err) == (4, True)


def test_no_rows_in_time(
    state: StateDirectory, pipeline_directory: Path, address: str
) -> None:  # fmt: skip
    words = ("shop", "orders", "--timeout", "0.5")
    assert penstock(pipeline_directory, address, *words) == (1, "", "no rows within 0.5 s\n")
    wait_for(lambda: not TapDirectory.all(state.root), lambda: "the tap has not ended")


def test_the_run_or_the_server_ends(
    console: Console, state: StateDirectory, pipeline_directory: Path, address: str
) -> None:
    def end_after_the_tap(end: object) -> None:
        wait_for(lambda: TapDirectory.all(state.root), lambda: "there is no tap")
        assert callable(end)
        end()

    for end, code, text in (
        (console.client.app.state.streams.close_all, 3, "the connection was lost to the server"),  # type: ignore[attr-defined]
        (lambda: console.post(f"pipelines/{console.id()}/stop"), 4, "the pipeline does not run"),
    ):
        thread = threading.Thread(target=end_after_the_tap, args=(end,))
        thread.start()
        found, _, err = penstock(pipeline_directory, address, "shop", "orders", "--timeout", "30")
        thread.join()
        assert (found, text in err) == (code, True), err
        wait_for(lambda: not TapDirectory.all(state.root), lambda: "the tap has not ended")
        console.client.app.state.streams.closed.clear()  # type: ignore[attr-defined]


def test_ctrl_c_ends_the_tap(
    console: Console, state: StateDirectory, pipeline_directory: Path, address: str
) -> None:
    words = [sys.executable, "-m", "penstock", "tap", "shop", "orders", "--server", address]
    process = subprocess.Popen(words, cwd=pipeline_directory, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: TapDirectory.all(state.root), lambda: "there is no tap")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, "Traceback" in err) == (130, False)
    wait_for(lambda: not TapDirectory.all(state.root), lambda: "the tap has not ended")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (HEAD + b"25\r\nevent: opened\ndata: {\"opened\": \"a\"}\n\n\r\n", "unreachable"),
        (HEAD + b"25\r\nevent: opened\n", "unreachable"),
        (HEAD + b"1e\r\nevent: rows\ndata: [1, 2\n\n   \n\r\n", "unreachable"),
        (HEAD.replace(b"event-stream", b"html") + b"0\r\n\r\n", "no-penstock-server"),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 2\r\n\r\nno", "no-penstock-server"),
    ],
)  # fmt: skip
def test_a_connection_that_is_lost(answer: bytes, code: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        client = ServerClient(f"http://127.0.0.1:{listener.getsockname()[1]}", "token")
        with pytest.raises(Exception) as raised:
            list(client.tap("id", "orders", 10, 20))
        thread.join()
    assert getattr(raised.value, "code", raised.value) == code


def test_a_server_that_hangs() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = ServerClient(f"http://127.0.0.1:{listener.getsockname()[1]}", "token", 0.2)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(HEAD)
                connection.recv(65536)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(Transient, match="did not answer within"):
            list(client.tap("id", "orders", 10, 20))
        thread.join()
