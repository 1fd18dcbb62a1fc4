"""Secrets in SQL, paths and Python code: neither printed nor stored in the state directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from command_line import CommandLine
from penstock.runtime.dead_letters.store import DeadLetters

pytestmark = pytest.mark.spark

SECRET = "hunter2topsecret"
TABLE = "CREATE TABLE k (id INT, t STRING) WITH (connector='files', path='in.json', format='json');"
CAST = "SELECT id, cast('${secret:file/PW}' AS INT) AS n FROM k"
SCRIPTS = {
    "cast.sql": f"{TABLE}\n{CAST};",
    "cast.yaml": f"""\
sources: {{k: {{type: files, path: in.json, schema: id INT}}}}
transforms: {{n: {{type: sql, sql: "{CAST}"}}}}
sinks: {{out: {{type: print, from: n}}}}
""",
    "path.sql": TABLE.replace("in.json", "../${secret:file/PW}/x.json") + "\nSELECT id FROM k;",
    "code.sql": f"""\
{TABLE}
CREATE FUNCTION f(t STRING) RETURNS INT LANGUAGE PYTHON AS $$
def f(t):
    raise ValueError("bad ${{secret:file/PW}} " + t)
$$;
SELECT id, f(t) AS n FROM k;
""",
}


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/PW").write_text(f"{SECRET}\n")
    (tmp_path / "in.json").write_text('{"id": 1, "t": "5"}\n')
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text)
    return {"PENSTOCK_SECRETS": str(tmp_path / "secrets")}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_secret_is_neither_printed_nor_stored(
    tmp_path: Path, cli: CommandLine, environment: Mapping[str, str], name: str
) -> None:
    texts = []
    for words in (
        ("explain", name, "--sql"), ("explain", name), ("run", name), ("run", name),
        ("status", name), ("dead", "list", name), ("dead", "replay", name),
    ):  # fmt: skip
        result = cli(tmp_path, *words, environment=environment)
        texts += [result.stdout, result.stderr]
    assert SECRET not in "".join(texts)
    assert "**********" in "".join(texts)
    assert stored_secrets(tmp_path / ".penstock") == []


def test_the_payload_of_a_dead_letter_is_not_changed(
    tmp_path: Path, cli: CommandLine, environment: Mapping[str, str]
) -> None:
    (tmp_path / "in.json").write_text(f'{{"id": 1, "t": "{SECRET}"}}\n')
    assert cli(tmp_path, "run", "code.sql", environment=environment).returncode == 0
    listed = cli(tmp_path, "dead", "list", "code.sql", "--json", environment=environment).stdout
    assert "ValueError: bad ********** **********" in listed
    dead_letters = DeadLetters(tmp_path / ".penstock/code/dead_letters").read()
    (payload,) = dead_letters.column("payload").to_pylist()
    assert json.loads(payload) == {"id": 1, "t": SECRET}


def stored_secrets(state: Path) -> list[str]:
    """Returns the files of a state directory with the secret."""
    paths = [path for path in state.rglob("*") if path.is_file()]
    assert paths
    return [path.name for path in paths if SECRET.encode() in path.read_bytes()]
