"""The summary of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.cli.summary import dead_letter_hint

PIPELINE = """\
name: small
runtime: {state: state}
sources: {rows: {type: generate, rows: 1, fields: {id: sequence}}}
sinks: {out: {type: blackhole, from: rows}}
"""


@pytest.mark.parametrize(
    ("overrides", "options"),
    [
        ((), ""),
        (("runtime.master=local[1]", "sinks.out.from=rows"), ""),
        (("runtime.state=/nfs/my states",), " --set 'runtime.state=/nfs/my states'"),
        (
            ("name=other", "runtime.state=s3://b/p"),
            " --set name=other --set runtime.state=s3://b/p",
        ),
    ],
)
def test_the_command_of_dead_letters_finds_the_state_of_the_run(
    overrides: tuple[str, ...], options: str, tmp_path: Path
) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(PIPELINE)
    hint = dead_letter_hint(app.plan(path, overrides=overrides), 2, [path])
    assert hint == f"2 dead letters; run: penstock dead list {path}{options}"
