"""The pipeline of a state directory: files of the same name, renamed, moved and merged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock import app
from penstock.cli.main import main
from penstock.control import PipelineControl
from penstock.core.errors import StateError
from penstock.plan.model import Plan
from penstock.runtime.state.entries import PIPELINE
from penstock.runtime.state.pipeline import open_state, record_files

TEXT = """
name: shop
runtime: {{state: {}}}
sources: {{rows: {{type: memory, rows: [{{id: 1}}]}}}}
sinks: {{out: {{type: blackhole, from: rows}}}}
"""
OVERLAY = "dead_letter: {type: print}"


def plan_of(*paths: Path, state: Path | str = ".penstock") -> Plan:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(TEXT.format(state) if path == paths[0] else OVERLAY)
    return app.plan(list(paths))


def claim(plan: Plan) -> str | None:
    state = open_state(plan)
    with state.locked():
        return record_files(plan, state)


def test_files_of_one_name_do_not_share_their_state(tmp_path: Path) -> None:
    claim(plan_of(tmp_path / "a.yaml"))
    other = plan_of(tmp_path / "b.yaml")
    with pytest.raises(StateError) as caught:
        open_state(other)
    assert caught.value.code == "other-pipeline"
    assert "a.yaml" in caught.value.message and "b.yaml" in caught.value.message
    assert "another name" in str(caught.value.hint) and "runtime.state" in str(caught.value.hint)
    claim(plan_of(tmp_path / "a.yaml"))


def test_a_state_directory_of_several_projects(tmp_path: Path) -> None:
    claim(plan_of(tmp_path / "first/shop.yaml", state=tmp_path / "state"))
    with pytest.raises(StateError, match="same name"):
        open_state(plan_of(tmp_path / "second/shop.yaml", state=tmp_path / "state"))


@pytest.mark.parametrize(
    "command", ["run", "run --fresh", "stop", "status", "dead list", "check --level static"]
)
def test_commands_do_not_use_the_state_of_another_file(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = claim_and_spool(tmp_path / "a.yaml")
    plan_of(tmp_path / "b.yaml")
    assert main([*command.split(), str(tmp_path / "b.yaml")]) == 4
    assert "other-pipeline" in capsys.readouterr().err
    assert (state / "spool").exists() and not (state / "stop").exists()


def claim_and_spool(path: Path) -> Path:
    plan = plan_of(path)
    claim(plan)
    (plan.state / "spool").mkdir()
    return plan.state


def test_a_replay_does_not_use_the_state_of_another_file(tmp_path: Path) -> None:
    claim(plan_of(tmp_path / "a.yaml"))
    with pytest.raises(StateError, match="same name"):
        PipelineControl.of(plan_of(tmp_path / "b.yaml")).replay()


def test_a_renamed_file_continues_its_state(tmp_path: Path) -> None:
    claim(plan_of(tmp_path / "a.yaml"))
    (tmp_path / "a.yaml").rename(tmp_path / "b.yaml")
    note = claim(plan_of(tmp_path / "b.yaml"))
    assert note is not None and "a.yaml, which no longer exists" in note
    assert claim(plan_of(tmp_path / "b.yaml")) is None


@pytest.mark.parametrize("state", [".penstock", "{}/state"])
def test_a_moved_project_continues_its_state(tmp_path: Path, state: str) -> None:
    claim(plan_of(tmp_path / "old/a.yaml", state=state.format(tmp_path)))
    (tmp_path / "old").rename(tmp_path / "new")
    plan = plan_of(tmp_path / "new/a.yaml")
    note = claim(plan)
    assert (plan.state / PIPELINE).exists()
    assert (note is None) == (state == ".penstock")


def test_a_copied_project_has_its_own_state(tmp_path: Path) -> None:
    claim(plan_of(tmp_path / "old/a.yaml"))
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    assert claim(plan_of(tmp_path / "new/a.yaml")) is None


def test_other_paths_of_a_file_are_the_same_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(plan_of(tmp_path / "project/a.yaml"))
    monkeypatch.chdir(tmp_path / "project")
    claim(plan_of(Path("a.yaml")))
    claim(plan_of(Path("../project/a.yaml")))
    (tmp_path / "link").symlink_to(tmp_path / "project")
    claim(plan_of(tmp_path / "link/a.yaml"))
    (tmp_path / "project/b.yaml").symlink_to("a.yaml")
    claim(plan_of(tmp_path / "project/b.yaml"))


def test_an_overlay_may_be_added_and_removed_but_not_exchanged(tmp_path: Path) -> None:
    base, staging, production = (tmp_path / f"{name}.yaml" for name in ("base", "st", "prod"))
    for files in ([base], [base, staging], [base], [base, staging]):
        assert claim(plan_of(*files)) is None
    with pytest.raises(StateError, match="same name"):
        open_state(plan_of(base, production))


def test_a_state_of_an_earlier_version_is_adopted(tmp_path: Path) -> None:
    plan = plan_of(tmp_path / "a.yaml")
    claim(plan)
    (plan.state / PIPELINE).write_text("{")
    assert claim(plan_of(tmp_path / "b.yaml")) is None
    (plan.state / PIPELINE).unlink()
    assert claim(plan) is None
