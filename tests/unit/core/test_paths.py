"""Paths in the state: relative to the directory of the pipeline file if they are below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.paths import Project


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("/a/b/c.json", "c.json"), ("/a/b", "."), ("/a/b/", "."), ("/a/bc", "/a/bc"),
        ("/a", "/a"), ("s3://a/b/c", "s3://a/b/c"),
    ],
)  # fmt: skip
def test_paths_below_the_project(path: str, relative: str) -> None:
    project = Project(Path("/a/b"))
    assert project.relative(path) == relative
    if relative != ".":
        assert project.absolute(relative) == path


def test_paths_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    project = Project(tmp_path / "link")
    assert project.relative(str(tmp_path / "real/a")) == project.relative(f"{tmp_path}/link/a")


def test_programs_without_a_pipeline_file() -> None:
    assert Project().absolute(Project().relative("/a/b")) == "/a/b"
