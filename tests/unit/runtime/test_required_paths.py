"""Paths that the executors of a cluster must share, by the nodes of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import StateError, ValidationErrors
from penstock.engine.spark_session.shared_paths import SharedPath
from penstock.plan.model import Plan
from penstock.runtime.required_paths import check_executors, required_paths

TEXT = """
name: p
sources:
  in: SOURCE
transforms:
  t: {type: sql, from: in, sql: "SQL"}
sinks:
  out: SINK
"""
FIELDS = "fields: {id: sequence, k: {type: choice, of: [a, b]}, t: timestamp}"
GENERATE = f"{{type: generate, rows: 9, {FIELDS}}}"
ENDLESS = f"{{type: generate, rate: 1, {FIELDS}}}"
TIMED = f"{{type: generate, rate: 1, {FIELDS}, watermark: {{column: t, delay: 1 s}}}}"
HTTP = "{type: http, listen: 'localhost:8080', format: json, schema: 'id INT, k STRING'}"
GROUPS = "SELECT k, count(*) AS n FROM in GROUP BY k"


def plan_of(
    directory: Path, source: str = GENERATE, sql: str = "SELECT * FROM in",
    sink: str = "{type: print, from: t}",
) -> Plan:  # fmt: skip
    file = directory / "p.yaml"
    texts = {"SOURCE": source, "SQL": sql, "SINK": sink}
    text = TEXT
    for word, value in texts.items():
        text = text.replace(word, value)
    file.write_text(text)
    (directory / "lock").write_text("this run")
    return app.plan(file)


def paths_of(plan: Plan, directory: Path, *, is_served: bool = False) -> Sequence[SharedPath]:
    with required_paths(plan, directory / "lock", "id", is_served=is_served) as paths:
        assert all(path.where is not None for path in paths)
        return [path.shared for path in paths]


@pytest.mark.parametrize("sql", ["SELECT * FROM in", GROUPS])
def test_a_pipeline_without_state_requires_no_path(sql: str, tmp_path: Path) -> None:
    assert paths_of(plan_of(tmp_path, sql=sql), tmp_path) == []


@pytest.mark.parametrize(
    ("node", "changed"),
    [
        ('transform "t" (type: sql) keeps the state of an updating query',
         {"source": ENDLESS, "sql": f"SELECT n, count(*) AS k FROM ({GROUPS}) GROUP BY n"}),
        ('transform "t" (type: sql) keeps the state of a query',
         {"source": TIMED, "sql": "SELECT window.start AS w, count(*) AS n FROM in "
                                  "GROUP BY window(t, '1 minute')"}),
        ('source "in" (type: http) keeps received messages', {"source": HTTP}),
    ],
)  # fmt: skip
def test_a_node_with_files_in_the_state_directory(
    node: str, changed: dict[str, str], tmp_path: Path
) -> None:
    plan = plan_of(tmp_path, **changed)
    (path,) = paths_of(plan, tmp_path)
    assert node in path.message and path.kept
    served = paths_of(plan, tmp_path, is_served=True)
    is_served = "updating" in node or "received" in node
    assert served == ([] if is_served else [path])
    assert (path.sample, path.code) == (str(tmp_path / "lock"), "state-not-shared")


def test_files_of_sources_and_sinks(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"id": 1}')
    source = "{type: files, path: 'in/*.json', format: json, schema: id INT}"
    plan = plan_of(tmp_path, source, sink="{type: sqlite, from: t, path: out/p.db, table: t}")
    with required_paths(plan, tmp_path / "lock", "id", is_served=False) as paths:
        read, written = (path.shared for path in paths)
        assert read.sample == str(tmp_path / "in/a.json") and not read.kept
        token = Path(written.sample)
        assert token == tmp_path / "out/.penstock-id" and token.exists() and written.kept
        assert 'sink "out" (type: sqlite)' in written.message
    assert not token.exists()


def test_two_sinks_of_one_directory(tmp_path: Path) -> None:
    first, second = (f"{{type: sqlite, from: t, path: out/{name}.db, table: t}}" for name in "ab")
    sink = f"{first}\n  other: {second}"
    with required_paths(
        plan_of(tmp_path, sink=sink), tmp_path / "lock", "id", is_served=False
    ) as paths:
        assert [path.shared.difference() for path in paths] == [None, None]


@pytest.mark.parametrize(
    ("path", "sample"),
    [("in", "in"), ("in/a.json", "in"), ("in/*/b.json", "in"), ("s3://bucket/in", None)],
)
def test_the_sample_of_a_source(path: str, sample: str | None, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source = f"{{type: files, path: '{path}', format: json, schema: id INT}}"
    found = [each.sample for each in paths_of(plan_of(tmp_path, source), tmp_path)]
    assert found == ([] if sample is None else [str(tmp_path / sample)])


def test_the_driver_serves_lookups_by_key(tmp_path: Path) -> None:
    names = "path: names.db, table: names, schema: id INT, primary_key: [id], lookup: true"
    source = f"{GENERATE}\n  names: {{type: sqlite, {names}}}"
    plan = plan_of(tmp_path, source, "SELECT in.* FROM in JOIN names ON in.id = names.id")
    (data,) = paths_of(plan, tmp_path)
    assert data.code == "path-not-shared" and data.sample == str(tmp_path)
    assert paths_of(plan, tmp_path, is_served=True) == []


def test_the_driver_serves_lookup_tables(tmp_path: Path) -> None:
    names = "path: names.json, format: json, schema: id INT, primary_key: [id], lookup: true"
    (tmp_path / "names.json").write_text("{}")
    source = f"{GENERATE}\n  names: {{type: files, {names}}}"
    plan = plan_of(tmp_path, source, "SELECT in.* FROM in JOIN names ON in.id = names.id")
    state, data = paths_of(plan, tmp_path)
    assert 'source "names" (type: files) keeps its rows' in state.message
    assert data.sample == str(tmp_path / "names.json")
    assert paths_of(plan, tmp_path, is_served=True) == []


def test_each_required_path_that_an_executor_does_not_share_is_an_error(tmp_path: Path) -> None:
    class Executors:
        def await_ready(self) -> dict[SharedPath, list[str]]:
            return {path.shared: ["executor on a, driver on b: no such file"] for path in unshared}

    plan = plan_of(
        tmp_path, ENDLESS, GROUPS,
        sink="{type: sqlite, from: t, path: out/p.db, table: t, mode: upsert}",
    )  # fmt: skip
    with required_paths(plan, tmp_path / "lock", "id", is_served=False) as paths:
        unshared = paths
        executors: Any = Executors()
        with pytest.raises(ValidationErrors) as several:
            check_executors(executors, paths)
        codes = {error.code: error.policy.exit_code for error in several.value.errors}
        assert codes == {"state-not-shared": 4, "path-not-shared": 4}
        assert several.value.policy.exit_code == 4
        unshared = paths[:1]
        with pytest.raises(StateError, match='transform "t"') as caught:
            check_executors(executors, paths)
    assert caught.value.where == plan.nodes["t"].where and "executor on a" in str(
        caught.value.detail
    )
