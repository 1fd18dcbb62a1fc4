"""Pipelines as YAML text: the YAML is the same pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from penstock.core.errors import SpecError
from penstock.spec.documents.reading import load
from penstock.spec.yaml.writer import convert

ROOT = Path(__file__).parents[3]
PATTERNS = ("tests/golden/pipelines/*.yaml", "tests/golden/pipelines/*.sql", "examples/*/*.yaml")
PIPELINES = sorted(
    path for pattern in PATTERNS for path in ROOT.glob(pattern) if ".test." not in path.name
)


@pytest.mark.quick(10)
@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.name)
def test_the_same_data_is_read_again(path: Path, tmp_path: Path) -> None:
    converted = tmp_path / "converted.yaml"
    converted.write_text(convert([str(path)]))
    env = {"KAFKA": "localhost:9092", "PORT": "1"}
    expected, found = (load([file], env=env).root.data() for file in (path, converted))
    assert found == expected


def test_variables_and_secrets_remain_expressions(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text(
        "CREATE TABLE a (id BIGINT) WITH (connector = 'kafka', topic = '${TOPIC}', "
        "'auth.password' = '${secret:kafka}');"
    )
    text = convert([str(path)])
    assert "topic: ${TOPIC}" in text and "password: ${secret:kafka}" in text


def test_several_files_become_one(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE a (id BIGINT) WITH (connector = 'memory');")
    (tmp_path / "b.yaml").write_text("include: a.sql\nsinks: {p: {type: print, from: a}}\n")
    converted = tmp_path / "c.yaml"
    converted.write_text(convert([str(tmp_path / "b.yaml")]))
    data = load([converted]).root.data()
    assert data["sources"]["a"]["type"] == "memory" and data["sinks"]["p"]["from"] == "a"


def test_types_of_other_dialects_are_types_of_spark(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text(
        "CREATE TABLE a (x SMALLINT UNSIGNED, y TINYINT UNSIGNED[]) WITH (connector = 'memory');"
        "CREATE FUNCTION words(line TEXT) RETURNS TABLE (text TEXT, `a b` INT4, tags TEXT[]) "
        "LANGUAGE PYTHON AS $$ return [] $$;"
    )
    data = yaml.safe_load(convert([str(path)]))
    assert data["sources"]["a"]["schema"] == {"x": "INT", "y": "ARRAY<SMALLINT>"}
    returns = "text STRING, `a b` INT, tags ARRAY<STRING>"
    assert data["functions"]["words"]["returns"] == returns


def test_a_file_with_an_error_is_not_converted(tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text("CREATE TABL a;")
    with pytest.raises(SpecError, match="found TABL"):
        convert([str(path)])
