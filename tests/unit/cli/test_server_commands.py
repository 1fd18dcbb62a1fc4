"""Commands over a server: one that answers, one that is down, and one that hangs."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from made_letters import made_letters
from penstock.app import plan
from penstock.cli import served_letters
from penstock.cli.logs import new_lines
from penstock.plan.fingerprint import fingerprint
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory
from penstock.server.store.pipelines import EJECTED, EJECTING_STARTS
from penstock.server_client import ServerClient
from server_console import PIPELINE, Console
from web_console import listening

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("static_checks")]


Penstock = Callable[..., tuple[int, str, str]]


@pytest.fixture
def penstock(console: Console, pipeline_directory: Path) -> Iterator[Penstock]:
    with listening(console) as url:

        def run(*words: str, **environment: str) -> tuple[int, str, str]:
            done = CommandLine()(
                pipeline_directory, *words, environment={"PENSTOCK_SERVER": url, **environment}
            )
            return done.returncode, done.stdout, done.stderr

        yield run


@pytest.fixture
def changed(pipeline_directory: Path) -> str:
    """A valid change of the pipeline, in a file outside the directory of the server."""
    hidden = pipeline_directory / ".new"
    hidden.mkdir()
    text = PIPELINE.format(name="shop") + "\ndescription: a shop\n"
    (hidden / "shop.yaml").write_text(text)
    return str(hidden / "shop.yaml")


def test_versions_of_a_pipeline(penstock: Penstock, console: Console, changed: str) -> None:
    code, out, err = penstock("apply", changed, "--note", "described")
    assert (code, err) == (0, "")
    assert out == (
        "shop: 2 lines added, 0 removed\n  all parts keep their state\n"
        "shop: version 2 is applied; the pipeline does not run\n"
    )
    assert penstock("apply", changed)[1] == "shop: no changes since version 2\n"
    assert penstock("rollback", "shop", "1")[0] == 0
    code, out, _ = penstock("versions", "shop")
    rows = [line.split(maxsplit=2) for line in out.splitlines()[1:]]
    assert [row[0] for row in rows] == ["3", "2", "1"], out
    assert rows[0][1] == "*"
    assert [row[-1].endswith(note) for row, note in zip(
        rows, ("roll back to version 1", "described", "changed in the directory"), strict=True
    )] == [True] * 3  # fmt: skip
    assert "description" not in console.get(f"pipelines/{console.id()}")["text"]
    code, _, err = penstock("rollback", "shop", "9")
    assert (code, "unknown-version" in err) == (2, True)


def test_an_invalid_file_stops_nothing(penstock: Penstock, console: Console, changed: str) -> None:
    penstock("start", "shop")
    console.await_health("running")
    file = Path(changed)
    file.write_text(file.read_text().replace("generate", "generat"))
    code, out, err = penstock("apply", changed)
    assert (code, out) == (2, "shop: 3 lines added, 1 removed\n")
    assert f"--> {changed}:4:18" in err
    assert '^^^^^^^ did you mean "generate"?' in err
    assert console.health()["state"] == "running"
    assert len(console.get(f"pipelines/{console.id()}/runs")) == 1


def test_a_change_that_the_state_does_not_support_is_listed_once(
    penstock: Penstock, console: Console, pipeline_directory: Path, changed: str
) -> None:
    file = pipeline_directory / "shop" / "shop.yaml"
    state = StateDirectory(file.parent / ".penstock" / "shop")
    state.write("plan.json", fingerprint(plan(file), state.key()))
    source = "type: generate, fields: {id: {type: sequence}}"
    Path(changed).write_text(file.read_text().replace(source, "type: impulse"))
    code, out, err = penstock("apply", changed)
    assert code == 4, "as by penstock run"
    assert (out + err).count('source "orders"') == 1
    assert '  incompatible: source "orders": its type was generate and is impulse\n' in out
    assert err.startswith("error[changed-plan]: ") and "hint: Undo the change" in err


def test_dead_letters_of_a_server(
    penstock: Penstock, pipeline_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateDirectory(pipeline_directory / "shop" / ".penstock" / "shop")
    DeadLetters(state.dead_letters).put("made", made_letters(25, "orders"))
    monkeypatch.setattr(served_letters, "PAGE", 10)
    code, out, err = penstock("dead", "list", "shop", "--limit", "1")
    assert (code, err) == (0, "")
    assert out.startswith("shop: 25 dead letters\n") and "orders  even  13" in out
    code, out, _ = penstock("dead", "replay", "shop", "--code", "odd", "--dry-run")
    assert (code, out) == (0, "shop: 12 dead letters would be replayed\norders  odd  12\n")
    _, out, _ = penstock("dead", "replay", "shop", "--id", "00000002", "--dry-run")
    assert out.startswith("shop: 5 dead letters would be replayed\n"), "20 to 24, on other pages"
    replayed: list[Any] = []

    def replay(client: ServerClient, id: str, ids: Any, **options: Any) -> dict[str, Any]:
        replayed.append((ids, options))
        skipped = [{"node": "orders", "count": 1, "reason": "it is gone"}]
        return {"replayed": 4, "finished": 0, "failed": 0, "skipped": skipped}

    monkeypatch.setattr(ServerClient, "replay", replay)
    code, out, _ = penstock("dead", "replay", "shop", "--id", "00000002")
    assert (code, out) == (1, "4 dead letters replayed\n1 of orders not replayed: it is gone\n")
    penstock("dead", "replay", "shop", "--force")
    assert sorted(replayed[0][0]) == [f"{number:09}" for number in range(20, 25)]
    assert replayed[1] == (None, {"force": True})
    code, _, err = penstock("dead", "replay", "shop", "cafe")
    assert (code, "expected the name of one pipeline" in err) == (2, True)


def test_a_dead_letter_of_a_server_is_shown_and_removed(
    penstock: Penstock, pipeline_directory: Path
) -> None:
    store = DeadLetters(
        StateDirectory(pipeline_directory / "shop" / ".penstock" / "shop").dead_letters
    )
    store.put("texts", made_letters(25, "orders"))
    store.put("bytes", bytes_letter := made_letters(26, "orders", b"\xff").slice(25))
    (odd,) = bytes_letter.column("id").to_pylist()
    code, out, err = penstock("dead", "show", "shop", "000000007")
    assert (code, err) == (0, "")
    assert "code      odd" in out and out.endswith("\npayload (2 B)\n{}\n")
    assert penstock("dead", "show", "shop", odd)[1].endswith("\npayload in hex (1 B)\nff\n")
    assert penstock("dead", "show", "shop", "000000007", "--payload")[1] == "{}"
    assert json.loads(penstock("dead", "show", "shop", odd, "--json")[1])["payload_hex"] == "ff"
    code, _, err = penstock("dead", "show", "shop", "00000001")
    assert (code, "ambiguous" in err) == (2, True)
    for words in ("show shop f/..", "remove shop --id f", "replay shop --id f",
                  "replay shop --id f --dry-run"):  # fmt: skip
        code, out, err = penstock("dead", *words.split())
        assert (code, out) == (2, "") and "no dead letter whose ID starts with" in err, words
    code, _, err = penstock("dead", "show", "shop", "")
    assert (code, "expected the file of the pipeline and an id" in err) == (2, True)
    code, _, err = penstock("dead", "remove", "shop", "--code", "odd")
    assert (code, "Remove 13 dead letters permanently?" in err) == (2, True)
    assert penstock("dead", "remove", "shop", "--code", "odd", "--yes")[1] == (
        "shop: removed 13 dead letters\n"
    )
    assert penstock("dead", "remove", "shop", "--id", "00000000", "--yes")[1] == (
        "shop: removed 5 dead letters\n"
    )
    assert store.count() == 8


def test_a_new_name_is_a_new_pipeline(
    penstock: Penstock, console: Console, pipeline_directory: Path
) -> None:
    file = pipeline_directory / ".cafe.yaml"
    file.write_text(PIPELINE.format(name="cafe"))
    assert penstock("apply", str(file))[1].startswith("cafe: created as version 1")
    assert {each["name"] for each in console.get("pipelines")} == {"shop", "cafe"}


def test_start_status_logs_and_stop(penstock: Penstock, console: Console) -> None:
    assert penstock("start", "shop")[0] == 0
    console.await_health("running")
    code, out, _ = penstock("status", "--all")
    assert (code, out.split()[:2], "share" in out) == (0, ["shop", "running"], False)
    log = console.server.parts.settings.logs / console.id() / "log.jsonl"
    log.write_text(
        '{"timestamp": "2026-01-01T00:00:00Z", "level": "info", "event": "hi", "rows": 2}\n'
        '{"timestamp": "2026-01-01T00:00:01Z", "level": "error", "event": "\\u001b[2J", "run": 1}\n'
    )
    assert penstock("logs", "shop")[1] == (
        "2026-01-01T00:00:00 info    hi rows=2\n2026-01-01T00:00:01 error   \\u001b[2J\n"
    )
    assert penstock("logs", "shop", "--level", "error")[1].count("\n") == 1
    assert penstock("stop", "shop") == (0, "shop stopped\n", "")
    assert console.health()["state"] == "stopped"


def test_status_of_an_ejected_pipeline(penstock: Penstock, console: Console) -> None:
    pipelines, id = console.server.parts.views._pipelines, console.id()
    for _ in range(EJECTING_STARTS):
        pipelines.add_failed_start(id, pipelines.get(id).wishes)
    lines = penstock("status", "--all")[1].splitlines()
    assert (lines[0].split()[0], lines[1].strip()) == ("shop", EJECTED)
    (facts,) = json.loads(penstock("status", "--all", "--json")[1])
    assert facts["ejected"] == EJECTED


def test_wrong_names_and_tokens(penstock: Penstock) -> None:
    code, _, err = penstock("start", "shpo")
    assert (code, 'did you mean "shop"?' in err) == (2, True)
    code, _, err = penstock("versions", "shop", PENSTOCK_TOKEN="penstock_wrong")
    assert (code, "PENSTOCK_TOKEN" in err, "penstock_wrong" in err) == (3, True, False)
    code, _, err = penstock("versions", "shop", "--data", "nowhere")
    assert (code, "error[no-token]" in err) == (2, True)
    for url in ("http://ann:pass@localhost", "ftp://localhost", "http://[", "http://x:99999"):
        code, _, err = penstock("versions", "shop", "--server", url, PENSTOCK_TOKEN="t")
        assert (code, "invalid-url" in err) == (2, True), url
    code, _, err = penstock("versions", "shop", "--server", "https://example.invalid")
    assert (code, "no-token" in err) == (2, True), "the file is for this machine only"


def test_keys_are_rotated(penstock: Penstock) -> None:
    assert penstock("rotate")[:2] == (0, "0 secrets encrypted with the first key\n")


@pytest.mark.parametrize(
    ("url", "warned"),
    [("http://server.invalid", True), ("https://server.invalid", False), ("http://[::1]:1", False),
     ("http://localhost:1", False), ("HTTP://127.0.0.2:1", True)],
)  # fmt: skip
def test_a_token_without_encryption(
    url: str, warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock.cli.server_options import connect

    monkeypatch.setenv("PENSTOCK_TOKEN", "token")
    connect(url, None)
    assert ("without encryption" in capsys.readouterr().err) is warned


def test_a_server_that_is_down_hangs_or_is_another_one() -> None:
    from penstock import server_client
    from penstock.core.errors import Permanent, Transient

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        client = server_client.ServerClient(url, "token", timeout=0.2)
        with pytest.raises(Transient, match="did not answer"):
            client.pipelines()
        listener.accept()[0].close()

        def answer(content: bytes) -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    if b"token" in connection.recv(65536):
                        connection.sendall(content)
                        return

        for content, kind, code in (
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
             Permanent, "no-penstock-server"),
            (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n",
             Permanent, "no-penstock-server"),
            (b"SSH-2.0\r\n", Transient, "unreachable"),
        ):  # fmt: skip
            thread = threading.Thread(target=answer, args=(content,))
            thread.start()
            with pytest.raises(kind) as raised:
                server_client.ServerClient(url, "token", timeout=20).pipelines()
            assert raised.value.code == code
            thread.join()
    with pytest.raises(Transient, match="could not reach"):
        client.pipelines()


def test_new_lines_follow_the_known_ones() -> None:
    a, b, c = ({"event": name} for name in "abc")
    assert new_lines([a, b], [b, c]) == [c]
    assert new_lines([a, b, b], [b, b, b]) == [b]
    assert new_lines([a], [b, c]) == [b, c]
    assert new_lines([], [a]) == [a]
    assert new_lines([a], []) == []


def test_a_newer_version_is_not_overwritten(penstock: Penstock, console: Console) -> None:
    text = PIPELINE.format(name="shop")
    path = f"pipelines/{console.id()}/apply"
    assert console.post(path, {"text": text + "# 1", "base": 0})["number"] == 2
    answer = console.post(path, {"text": text + "# 2", "base": 0}, status=409)
    assert answer["errors"][0]["code"] == "newer-version"
