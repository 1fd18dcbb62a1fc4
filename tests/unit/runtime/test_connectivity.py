"""Systems that cannot be reached, all reported at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock import app
from penstock.core.errors import Bug, PenstockError, Transient
from penstock.plan.model import Plan
from penstock.runtime.connectivity import check_connectivity
from penstock.sdk import Config, Source

PIPELINE = """
sources:
  a: {type: files, path: nowhere/*.json, schema: id BIGINT}
  b: {type: files, path: nothing/*.json, schema: id BIGINT}
sinks:
  out: {type: blackhole, from: a}
  other: {type: blackhole, from: b}
"""


class Stuck(Source[Config]):
    """Never answers until it is let go."""

    free = threading.Event()

    def check(self) -> None:
        self.free.wait(60)


class Broken(Source[Config]):
    """Fails as no one foresaw."""

    def check(self) -> None:
        raise ZeroDivisionError("division by zero")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE)
    return app.plan(path)


@pytest.fixture
def free() -> Iterator[None]:
    yield
    Stuck.free.set()


def with_source(plan: Plan, source: Source[Config]) -> Plan:
    return replace(plan, nodes={**plan.nodes, "b": replace(plan.nodes["b"], component=source)})


def codes(errors: list[PenstockError]) -> list[str]:
    return [each.code for each in errors]


def test_all_errors_have_their_place(plan: Plan) -> None:
    found = check_connectivity(plan)
    assert codes(found) == ["no-files", "no-files"]
    assert [each.where.line for each in found if each.where] == [3, 4]


@pytest.mark.slow
@pytest.mark.usefixtures("free")
def test_a_missing_answer_is_a_timeout(plan: Plan) -> None:
    found = check_connectivity(with_source(plan, Stuck(Config())), timeout=0.5)
    assert codes(found) == ["no-files", "timeout"]
    assert isinstance(found[1], Transient) and "no answer within 500ms" in found[1].message


def test_an_unexpected_error_is_a_bug(plan: Plan) -> None:
    found = check_connectivity(with_source(plan, Broken(Config())))
    assert isinstance(found[1], Bug) and "division by zero" in found[1].message
