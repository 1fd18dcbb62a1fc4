"""Every wrong file gets exactly the text that stands beside it.

PENSTOCK_UPDATE_GOLDEN=1 writes the texts. A first line `# run: other.yaml --set a.b=c` gives
further files and options of the command line. A first line `# convert` converts the file to SQL.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from penstock import app
from penstock.core.error_report import format_error
from penstock.core.errors import PenstockError
from penstock.spec.script.writer import to_script

WRONG = Path(__file__).parent / "wrong"
FILES = sorted(path.name for path in WRONG.glob("[0-9]*") if path.suffix != ".txt")
ENVIRONMENT = {
    "HOME": "/home/ann",
    "KAFKA_BROKERS": "kafka:9092",
    "KAFKA_TOPIC": "clicks",
    "EMPTY": "",
    "DB_PASSWORD": "hunter2",
    "PENSTOCK_SECRETS": "secrets",
}


def report(path: str) -> str:
    """Returns the errors of a file, or else its warnings."""
    paths, sets = _arguments(path)
    try:
        if Path(path).read_bytes().startswith(b"# convert\n"):
            to_script(paths)
            return ""
        plan = app.plan(paths, overrides=sets, env=ENVIRONMENT)
    except PenstockError as error:
        return format_error(error)
    warnings = (format_error(each) for each in plan.warnings)
    return "\n\n".join(each.replace("error[", "warning[", 1) for each in warnings)


def _arguments(path: str) -> tuple[list[str], list[str]]:
    paths, sets = [path], []
    first = Path(path).read_bytes().split(b"\n", 1)[0].decode("utf-8", "replace")
    if first.startswith("# run: "):
        words = iter(shlex.split(first.removeprefix("# run: ")))
        for word in words:
            if word == "--set":
                sets.append(next(words))
            else:
                paths.append(word)
    return paths, sets


@pytest.mark.parametrize("name", FILES)
def test_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(WRONG)
    golden = Path(name).with_suffix(".txt")
    printed = report(name) + "\n"
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        golden.write_text(printed, encoding="utf-8")
    assert printed.strip(), "the file is not wrong"
    assert printed == golden.read_text(encoding="utf-8")


def test_no_jargon() -> None:
    jargon = (
        "Input should",
        "extra_forbidden",
        "Extra inputs",
        "Field required",
        "pydantic",
        "dict",
    )
    for golden in WRONG.glob("*.txt"):
        text = golden.read_text(encoding="utf-8")
        assert not [word for word in jargon if word in text], golden.name
        assert "hunter2" not in text and "s3cr3t" not in text, golden.name
