"""Every pipeline of the repository that a SQL script can state is the same pipeline as a script.

not_in_sql.txt has the others, with the reasons. PENSTOCK_UPDATE_GOLDEN=1 writes the file.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from penstock import app
from penstock.core.errors import SpecError, ValidationErrors, flatten_errors
from penstock.plan.comparison import compare
from penstock.plan.fingerprint import fingerprint
from penstock.spec.documents.reading import load
from penstock.spec.script.writer import to_script
from penstock.spec.script.writer.comparison import canonical
from penstock.spec.yaml.writer import convert

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "not_in_sql.txt"
ENVIRONMENT = {"KAFKA": "localhost:9092", "PORT": "1"}


def _files(*patterns: str) -> list[Path]:
    return sorted(
        path for pattern in patterns for path in ROOT.glob(pattern) if ".test." not in path.name
    )


PIPELINES = _files("tests/golden/pipelines/*.yaml", "examples/*/*.yaml")
SCRIPTS = _files("tests/golden/pipelines/*.sql", "examples/**/*.sql")
OTHERS = {line.partition(":")[0] for line in GOLDEN.read_text().splitlines()}


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _in_directory(path: Path, directory: Path) -> Path:
    """Copies a pipeline and its Python files. A script becomes YAML."""
    for file in path.parent.glob("*.py"):
        shutil.copy(file, directory)
    copy = directory / f"{path.stem}.yaml"
    copy.write_text(convert([str(path)]) if path.suffix == ".sql" else path.read_text())
    return copy


def _said(path: Path) -> list[Path]:
    return [path] if _name(path) not in OTHERS else []


@pytest.mark.parametrize(
    "path", [each for path in [*PIPELINES, *SCRIPTS] for each in _said(path)], ids=_name
)
def test_the_script_is_the_same_pipeline(path: Path, tmp_path: Path) -> None:
    pipeline = _in_directory(path, tmp_path)
    script = tmp_path / f"{path.stem}.sql"
    script.write_text(to_script([str(pipeline)]).text)
    again = tmp_path / "again" / pipeline.name
    again.parent.mkdir()
    again.write_text(convert([str(script)]))
    expected, found, third = (
        canonical(load([file], env=ENVIRONMENT).root.data()) for file in (pipeline, script, again)
    )
    assert found == expected and third == expected
    first, second = (app.plan([str(file)], env=ENVIRONMENT) for file in (pipeline, script))
    assert compare(fingerprint(first), fingerprint(second)) == []
    assert to_script([str(again)]).text == script.read_text()


def test_pipelines_that_a_script_cannot_state(tmp_path: Path) -> None:
    lines = [line for path in [*PIPELINES, *SCRIPTS] for line in _reasons(path, tmp_path)]
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        GOLDEN.write_text("\n".join(lines) + "\n")
    assert lines == GOLDEN.read_text().splitlines()


def _reasons(path: Path, directory: Path) -> list[str]:
    pipeline = path
    if path.suffix == ".sql":
        pipeline = directory / f"{path.stem}.yaml"
        pipeline.write_text(convert([str(path)]))
    try:
        to_script([str(pipeline)])
    except (SpecError, ValidationErrors) as error:
        errors = flatten_errors(error)
        assert all(each.where and each.where.file == str(pipeline) for each in errors)
        places = [(each.where.line, each.where.column) if each.where else (0, 0) for each in errors]
        return [
            f"{_name(path)}:{line}:{column}: {each.message}"
            for (line, column), each in zip(places, errors, strict=True)
        ]
    return []
