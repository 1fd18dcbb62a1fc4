"""The base of all servers that tests start: they keep what they hold, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from servers import install
from servers.directory import end_leftovers
from servers.server import Server

UNTIED = "import ctypes; ctypes.CDLL(None).prctl(1, 0)"


class Web(Server):
    """Python's web server, over its own directory."""

    name = "web-pages"

    def __init__(self, before: str = "") -> None:
        super().__init__()
        self._before = before

    def command(self) -> Sequence[str]:
        serve = f"import http.server as h; h.test(h.SimpleHTTPRequestHandler, port={self.port})"
        return [sys.executable, "-c", "\n".join([self._before, serve])]

    def ready(self) -> None:
        self.get("")

    def get(self, name: str) -> str:
        with urlopen(f"http://127.0.0.1:{self.port}/{name}", timeout=1) as answer:
            return str(answer.read(), "utf-8")

    def put(self, name: str, text: str) -> None:
        (self.directory.path / name).write_text(text)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


def killed_run(before: str) -> tuple[Path, int]:
    """The directory and the process of a server whose test run was killed."""
    script = f"""
import os, signal
from integration.test_servers import Web
web = Web({before!r})
web.start()
print(web.directory.path, web.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    path, pid = run.stdout.split()
    return Path(path), int(pid)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).wait(20) is None or True
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_one_that_ended_starts_again_where_it_was(web, end):
    web.put("kept", "text")
    getattr(web, end)()
    with pytest.raises(OSError):
        web.ready()
    web.start()
    assert web.get("kept") == "text"


def test_a_paused_one_does_not_answer_until_it_goes_on(web):
    web.pause()
    with pytest.raises(TimeoutError):
        web.ready()
    web.resume()
    web.wait_until_ready()


def test_a_paused_one_can_be_stopped(web):
    web.pause()
    web.stop()
    assert not web.process.running


def test_several_run_at_once(web):
    with Web() as other:
        web.put("name", "one")
        other.put("name", "other")
        assert (web.get("name"), other.get("name")) == ("one", "other")


def test_one_that_a_thread_started_outlives_the_thread(web):
    web.stop()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(web.start).result()
    web.ready()


def test_one_that_ends_by_itself_says_its_last_words():
    with pytest.raises(RuntimeError, match="web-pages ended") as error, Web("no such disk"):
        pass
    assert "SyntaxError" in str(error.value)


def test_a_closed_one_leaves_nothing():
    with Web() as server:
        path, pid = server.directory.path, server.process.pid
    assert not path.exists() and not psutil.pid_exists(pid)


def test_a_killed_run_takes_its_servers_with_it():
    _, pid = killed_run(before="")
    assert gone(pid)


def test_processes_of_a_killed_run_are_found_and_ended(web):
    path, pid = killed_run(UNTIED)
    assert psutil.pid_exists(pid)
    end_leftovers.__wrapped__()
    assert gone(pid)
    assert not path.exists()
    web.ready()


class TestInstall:
    @pytest.fixture(autouse=True)
    def cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PENSTOCK_SERVERS", str(tmp_path))
        monkeypatch.delenv("CI", raising=False)
        return tmp_path

    def test_happens_once_for_all_who_ask(self):
        filled: list[Path] = []

        def fill(directory: Path) -> None:
            (directory / "jar").write_text("content")
            filled.append(directory)

        with ThreadPoolExecutor(4) as threads:
            found = set(threads.map(lambda _: install.installed("a-1", fill), range(4)))
        assert [(path / "jar").read_text() for path in found] == ["content"]
        assert len(filled) == 1

    def test_removes_a_partial_directory(self, cache):
        (cache / "a-1.part").mkdir()
        (cache / "a-1.part" / "half").touch()
        assert not list(install.installed("a-1", lambda _: None).iterdir())

    def test_failure_skips_and_leaves_nothing(self):
        def fill(directory: Path) -> None:
            install.run("sh", "-c", "echo no network >&2; exit 1")

        for _ in range(2):
            with pytest.raises(pytest.skip.Exception, match="no network"):
                install.installed("a-1", fill)

    def test_failure_fails_the_test_in_ci(self, monkeypatch):
        monkeypatch.setenv("CI", "true")
        with pytest.raises(pytest.fail.Exception, match="it is not there"):
            install.unavailable("it is not there", "get it")

    def test_says_how_to_get_a_program_that_is_missing(self, monkeypatch):
        monkeypatch.setenv("PATH", os.devnull)
        with pytest.raises(pytest.skip.Exception, match="apt install maven"):
            install.program("mvn", "maven")
