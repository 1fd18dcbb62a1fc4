"""The way from words to a verb and an exit code, without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest

from penstock import __main__ as entry_point
from penstock.cli.main import COMMANDS, main

HEAVY = {"pyspark", "pyarrow", "pandas"}
PLANNING = {"sqlglot", "ruamel.yaml", "penstock.spec.validate"}
UNRECEIVED = {"pandas", "pyspark", *PLANNING}


LINES = [
    ([], 0),
    (["--help"], 0),
    (["--version"], 0),
    (["run", "--help"], 0),
    (["run"], 2),
    (["run", "x.yaml", "--frsh"], 2),
    (["run", "x.yaml", "--log", "xml"], 2),
    (["rum"], 2),
    (["status"], 2),
    (["stop", "--nope"], 2),
    (["doctor", "--nope"], 2),
    (["stop", "x.yaml", "--timeout", "0s"], 2),
]
"""Command lines and their exit codes."""


@pytest.mark.slow
def test_help_errors_receivers_and_workers_import_nothing_heavy() -> None:
    """In one fresh process: the first line that imports a heavy package shows it.

    The process of a receiving source needs PyArrow but not pandas. Workers translate no SQL and
    read no file of a pipeline.
    """
    code = (
        "import importlib, json, os, sys\n"
        "from penstock.cli.main import main\n"
        f"for words in {[words for words, _ in LINES]!r}:\n"
        f"    results = [words, main(words), sorted({HEAVY!r} & set(sys.modules))]\n"
        "    print('result', json.dumps(results), file=sys.stderr)\n"
        "import penstock.runtime.receiving.receiver_process\n"
        f"print('receiver', sorted({UNRECEIVED!r} & set(sys.modules)), file=sys.stderr)\n"
        "from penstock.engine.workers.preload import PENSTOCK\n"
        "for name in PENSTOCK:\n"
        "    importlib.import_module(name)\n"
        f"print('workers', sorted({PLANNING!r} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    results = [
        json.loads(line.removeprefix("result "))
        for line in done.stderr.splitlines()
        if line.startswith("result ")
    ]
    assert results == [[words, status, []] for words, status in LINES]
    assert done.stderr.endswith("receiver []\nworkers []\n")


def test_ctrl_c_during_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(MetaPathFinder):
        def find_spec(self, name: str, *_: object) -> None:
            if name == "penstock.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "penstock.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    assert entry_point.main() == 130


@pytest.mark.parametrize("words", ["check x.yaml", "inspect x.yaml rows", "stop x.yaml"])
@pytest.mark.parametrize("timeout", ["0", "0s"])
def test_a_timeout_is_not_zero(
    words: str, timeout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words.split(), "--timeout", timeout]) == 2
    assert "--timeout" in capsys.readouterr().err


def test_help_shows_every_verb_and_where_to_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {verb.name} " in shown for verb in COMMANDS)
    assert "penstock quickstart" in shown


@pytest.mark.parametrize("verb", [verb.name for verb in COMMANDS])
def test_each_verb_teaches_by_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.count(f"penstock {verb}") >= 2, "its usage and at least one example"
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rum"], '"penstock" has no command "rum"\n  hint: did you mean "run"?'),
        (["run", "x.yaml", "--frsh"], "Unknown option: --frsh. Did you mean --fresh?"),
        (["run"], "penstock run requires FILES"),
        (["stop", "x.yaml", "--timeout", "soon"], "--timeout soon: expected a duration"),
    ],
)
def test_wrong_arguments_are_reported(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert not printed.out


@pytest.mark.parametrize("verb", ["run", "status", "stop"])
@pytest.mark.parametrize(
    ("name", "content", "code"),
    [("missing.yaml", None, "missing-file"), (".", None, "not-a-file"), ("a", "", "empty-file")],
)
def test_wrong_files(
    verb: str,
    name: str,
    content: str | None,
    code: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_text(content)
    assert main([verb, name]) == 2
    assert f"error[{code}]" in capsys.readouterr().err


@pytest.mark.slow
def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stdout.strip()


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{sys.executable} -m penstock schema | head -c 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.quick(1)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_verbs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(verb.name in script for verb in COMMANDS)
    assert "until-caught-up" in script


@pytest.mark.slow
def test_completion_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["completion", "bash", "--install"]) == 0
    written = tmp_path / ".local/share/bash-completion/completions/penstock"
    assert written.read_text()
    assert str(written) in capsys.readouterr().out


@pytest.mark.slow
def test_doctor_without_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--quick", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] == (status == 0)
    names = {check["name"]: check for check in found["checks"]}
    assert {"Python", "PySpark", "Java", "memory", "disk", "loopback"} <= set(names)
    assert names["PySpark"]["state"] == names["Java"]["state"] == "ok"
    assert "session" not in names
    assert "modbus" in names["extras"]["found"]
    assert "not installed" not in names["extras"]["found"], "the tests need all extras"


@pytest.mark.slow
def test_doctor_fails_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    assert main(["doctor", "--quick"]) == 1
    shown = capsys.readouterr().out
    assert "cannot be written" in shown
    assert "Set TMPDIR" in shown


def test_status_and_stop_of_what_never_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: p\nsources: {a: {type: generate, fields: {id: sequence}}}\n"
        "sinks: {b: {type: blackhole, from: a}}\n"
    )
    assert main(["status", str(path)]) == 0
    assert "p has never run" in capsys.readouterr().out
    assert main(["stop", str(path)]) == 0
    assert "p is not running" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == [path]


SHOP = """\
name: shop
sources:
  orders: {type: files, path: in, format: json, schema: id LONG}
  removed: {type: files, path: in2, format: json, schema: id LONG, after_read: delete}
sinks:
  archive: {type: blackhole, from: orders}
  report: {type: blackhole, from: orders}
  live: {type: blackhole, from: removed}
"""


@pytest.mark.parametrize(
    "words",
    [
        ["shop.yaml", "--backfill"],
        ["--backfill", "shop.yaml"],
        ["shop.yaml", "--backfill", "--fresh"],
    ],
)
def test_backfill_without_a_sink_names_the_sinks(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yaml").write_text(SHOP)
    assert main(["run", *words]) == 2
    assert capsys.readouterr().err == (
        "error[usage]: --backfill requires the name of a sink\n"
        "  hint: Add one of the sinks: archive, report.\n"
    )


def test_an_option_without_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "x.yaml", "--backfill"]) == 2
    assert "hint: Run penstock run FILE --backfill SINK." in capsys.readouterr().err
    assert main(["run", "x.yaml", "--log"]) == 2
    assert "error[usage]: --log requires a value" in capsys.readouterr().err
