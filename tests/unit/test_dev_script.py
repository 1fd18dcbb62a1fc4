"""`./dev`: what it says, and that it hands words on. No environment is made here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SHELL = shutil.which("dash") or shutil.which("sh") or "sh"
TOOLS = (
    "basename",
    "cat",
    "cksum",
    "cp",
    "dirname",
    "grep",
    "head",
    "mkdir",
    "rm",
    "sleep",
    "tail",
)

Dev = Callable[..., subprocess.CompletedProcess[str]]


def executable(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in a directory with a space in its name, and `bin` beside it as all of PATH."""
    checkout = tmp_path / "a checkout"
    checkout.mkdir()
    for name in ("dev", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    return checkout


@pytest.fixture
def dev(checkout: Path) -> Dev:
    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(checkout.parent / "bin")} | environment
        command = [SHELL, str(checkout / "dev"), *words]
        return subprocess.run(
            command,
            cwd=checkout.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
        )

    return run


@pytest.fixture
def environment(checkout: Path) -> Path:
    """The `bin` of an up-to-date environment whose programs say what they are called with."""
    programs = checkout / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    for program in ("penstock", "pytest"):
        executable(programs / program, f'echo {program} "$@"\nexit 7\n')
    checksum = subprocess.run(
        ["cksum"], stdin=(checkout / "pyproject.toml").open(), capture_output=True, text=True
    ).stdout
    version = ".".join(map(str, sys.version_info[:3]))
    for stamp in (".plain", ".dev"):
        (programs.parent / stamp).write_text(f"{checkout.resolve()}\n{version}\n{checksum}")
    return programs


def test_is_executable_and_plain_sh() -> None:
    assert os.access(ROOT / "dev", os.X_OK)
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert subprocess.run([SHELL, "-n", str(ROOT / "dev")]).returncode == 0


def test_says_how_it_is_used(dev: Dev) -> None:
    without_words = dev()
    assert without_words.returncode == 2
    assert without_words.stdout == ""
    helped = dev("--help")
    assert helped.returncode == 0
    assert helped.stdout == without_words.stderr
    for word in ("test", "lint", "bench", "docs"):
        assert f"\n  {word}" in helped.stdout


def test_names_the_benchmarks(dev: Dev, checkout: Path) -> None:
    (checkout / "bench").mkdir()
    (checkout / "bench" / "quick.py").write_text("def main() -> None: ...\n")
    (checkout / "bench" / "parts.py").write_text("")
    result = dev("bench", "quik")
    assert result.returncode == 2
    assert result.stderr.splitlines()[1:] == ["  quick"]


def test_hands_words_on_with_their_spaces_and_exit_codes(dev: Dev, environment: Path) -> None:
    result = dev("run", "a  b.yaml", "--set", "x=$y")
    assert (result.stdout, result.stderr) == ("penstock run a  b.yaml --set x=$y\n", "")
    assert result.returncode == 7


@pytest.mark.usefixtures("environment")
def test_all_tests_run_in_several_processes(dev: Dev, checkout: Path) -> None:
    of_root = f"pytest -c {checkout}/pyproject.toml --rootdir {checkout} -n 3"
    for options in ([], ["--durations=50", "--costs"]):
        first, second = dev("test", *options).stdout.splitlines()
        assert first == "penstock doctor --cache" and second.startswith(of_root)
        assert second.endswith(" ".join(["", *options, f"{checkout}/tests"]))


@pytest.mark.usefixtures("environment")
def test_quick_tests_need_no_class_cache(dev: Dev, checkout: Path) -> None:
    marks = "-m not spark and not server and not chaos and not docs and not slow"
    (line,) = dev("test", "--quick").stdout.splitlines()
    assert " -n logical " in line and f"{marks} {checkout}/tests/unit" in line
    (line,) = dev("test", "--quick", "-k", "word").stdout.splitlines()
    assert " -n logical " not in line and f"{marks} -k word" in line


def test_tests_of_the_checkout_run_from_anywhere(
    dev: Dev, checkout: Path, environment: Path
) -> None:
    of_root = f"pytest -c {checkout}/pyproject.toml --rootdir {checkout}"
    assert dev("test", "-k", "word").stdout == f"{of_root} -k word {checkout}/tests\n"
    here = checkout.parent / "test_here.py"
    here.touch()
    assert dev("test", "test_here.py::test").stdout == f"{of_root} test_here.py::test\n"


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (None, ["no Python from 3.11 to 3.14 found.", "install uv"]),
        ("case $* in *print*) echo 3.9.2 ;; *) exit 1 ;; esac", ["(python3 is 3.9.2)"]),
        (
            "case $* in *print*) echo 3.12.1 ;; *ensurepip*) exit 1 ;; esac",
            ["3.12.1) cannot make virtual environments", "apt install python3.12-venv"],
        ),
    ],
    ids=["none", "old", "without ensurepip"],
)
def test_says_what_to_install(
    dev: Dev, checkout: Path, python: str | None, said: list[str]
) -> None:
    if python:
        executable(checkout.parent / "bin" / "python3", python)
    result = dev("run")
    assert result.returncode == 1
    assert all(words in result.stderr for words in said), result.stderr
    assert not (checkout / "build" / "dev.lock").exists()


def test_shows_the_log_of_a_failure(dev: Dev, checkout: Path, environment: Path) -> None:
    for stamp in (".plain", ".dev"):
        (environment.parent / stamp).unlink()
    (environment.parent / ".unfinished").touch()
    executable(
        checkout.parent / "bin" / "python3",
        "case $* in *venv\\ --clear*) echo no space left; exit 3 ;; *print*) echo 3.12.1 ;; esac",
    )
    result = dev("run")
    assert result.returncode == 1
    assert "no space left" in result.stderr
    assert str(checkout / "build" / "dev.log") in result.stderr
    assert not (checkout / "build" / "dev.lock").exists()


def test_a_lock_left_by_the_dead_is_taken_over(dev: Dev, checkout: Path) -> None:
    lock = checkout / "build" / "dev.lock"
    lock.mkdir(parents=True)
    ended = subprocess.Popen(["true"])
    ended.wait()
    (lock / "holder").write_text(f"{ended.pid}\n")
    assert "no Python" in dev("run").stderr
    assert not lock.exists()
