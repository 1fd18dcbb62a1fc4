"""What a sink can promise follows from it and from all that is above it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock import app
from penstock.plan.guarantee import Guarantee, guarantee
from penstock.plan.model import Plan
from penstock.sdk import BatchId, Capability, Config, Sink, Source, Writer
from penstock.spec.node_models import SinkSpec

PIPELINE = """
sources:
  clicks:
    type: memory
    rows: [{id: 1}]
    schema: id BIGINT, at TIMESTAMP
transforms:
  sure: {type: sql, sql: SELECT id FROM clicks}
  timed: {type: sql, sql: "SELECT id, now() AS seen FROM clicks"}
  drawn: {type: filter, from: clicks, where: rand() < 0.5}
  dated: {type: map, from: clicks, set: {day: current_date()}}
  named: {type: select, from: clicks, columns: [id, uuid() AS name]}
  coded: {type: python, from: clicks, code: "def transform(batch): return batch"}
sinks:
  kept: {type: memory, from: sure}
  shown: {type: print, from: sure}
  kept_timed: {type: memory, from: timed}
  kept_drawn: {type: memory, from: drawn}
  kept_dated: {type: memory, from: dated}
  kept_named: {type: memory, from: named}
  kept_coded: {type: memory, from: coded}
"""


class Radio(Source[Config]):
    """Says everything once."""


class Upserts(Sink[Config]):
    """Replaces rows."""

    capabilities = frozenset({Capability.ROWS, Capability.UPSERT})

    def writer(self, client: None, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        raise NotImplementedError


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE)
    return app.plan(path)


def of(plan: Plan, sink: str) -> Guarantee:
    return guarantee(plan, plan.nodes[sink])


def test_exactly_once_needs_source_transforms_and_sink(plan: Plan) -> None:
    found = of(plan, "kept")
    assert found.level == "exactly once"
    assert len(found.reasons) == 3 and not found.notes


def test_a_sink_that_repeats_is_at_least_once(plan: Plan) -> None:
    found = of(plan, "shown")
    assert found.level == "at least once"
    assert found.reasons == (
        'sink "shown" (type: print) writes a batch again when it is retried after a crash',
    )


@pytest.mark.parametrize("culprit", ["timed", "drawn", "dated", "named", "coded"])
def test_rows_that_may_differ_are_at_least_once(plan: Plan, culprit: str) -> None:
    found = of(plan, f"kept_{culprit}")
    assert found.level == "at least once"
    (reason,) = found.reasons
    assert f'"{culprit}"' in reason and "may return other rows" in reason


def test_a_source_that_cannot_be_read_again_is_at_most_once(plan: Plan) -> None:
    radio = replace(plan.nodes["clicks"], component=Radio(Config()))
    found = of(replace(plan, nodes={**plan.nodes, "clicks": radio}), "shown")
    assert found.level == "at most once"
    assert "is not replayable" in found.reasons[0]


def test_an_upsert_says_that_rows_are_replaced(plan: Plan) -> None:
    spec = SinkSpec.model_validate(
        {"type": "upserts", "from": "sure", "mode": "upsert", "primary_key": "id"}
    )
    upserts = Upserts(Config())
    upserts.mode, upserts.primary_key = "upsert", ("id",)
    sink = replace(plan.nodes["shown"], component=upserts, spec=spec)
    found = guarantee(plan, sink)
    assert found.level == "at least once"
    assert found.reasons[0].endswith("replaces the rows with the same id")


@pytest.mark.slow
def test_dropped_records_and_changing_tables_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(
        """
sources:
  clicks:
    type: memory
    rows: [{id: 1, at: "2024-05-01T10:00:00Z"}]
    schema: id BIGINT, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
    on_error: drop
  names: {type: memory, rows: [{id: 1, name: ann}], static: true}
transforms:
  named: {type: sql, sql: "SELECT at, name FROM clicks JOIN names USING (id)"}
  counted:
    type: sql
    sql: SELECT name, count(*) AS n FROM named GROUP BY window(at, '1 hour'), name
sinks:
  kept: {type: memory, from: counted}
"""
    )
    notes = "\n".join(of(app.plan(path), "kept").notes)
    assert 'source "clicks" (type: memory) drops failing records' in notes
    assert 'source "names" (type: memory) is read at each start' in notes
    assert "late for their window" in notes


@pytest.mark.parametrize(("qos", "taken"), [(0, "at most once"), (1, "at least once")])
def test_the_guarantee_of_a_receiving_source_begins_in_the_journal(
    tmp_path: Path, qos: int, taken: str
) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(f"""
sources:
  heat: {{type: mqtt, url: "mqtt://localhost", topic: a, qos: {qos}, schema: celsius DOUBLE}}
sinks:
  kept: {{type: memory, from: heat}}
""")
    found = of(app.plan(path), "kept")
    assert found.level == "exactly once"
    (note,) = found.notes
    assert note.startswith(f'source "heat" (type: mqtt) receives a message {taken}; the guarantee')


def test_an_updating_query_drops_no_late_rows(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text("""
sources:
  clicks:
    type: files
    path: "*.jsonl"
    watch: true
    schema: id BIGINT, at TIMESTAMP
    watermark: {column: at, delay: 1 minute}
transforms:
  counted: {type: sql, sql: "SELECT id, count(*) AS n FROM clicks GROUP BY id"}
  levels: {type: sql, sql: "SELECT n, count(*) AS ids FROM counted GROUP BY n"}
sinks:
  kept: {type: files, from: levels, path: out, format: debezium_json}
""")
    plan = app.plan(path)
    assert plan.nodes["counted"].updating
    assert of(plan, "kept").notes == ()
