"""Operations of a worker with a Spark session: preview, tests, trial and replay of dead letters.

Each sends events while it works. All but the replay write to no sink and to no state directory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock import app
from penstock.control import PipelineControl
from penstock.core.error_report import to_dicts
from penstock.core.errors import UserError
from penstock.runtime.dead_letters.dead_letter import read_rows
from penstock.runtime.dead_letters.trial import try_letter as try_in_plan
from penstock.sdk.columns.shown_rows import shown_rows, shown_table
from penstock.server.live.warm_session import WarmSession
from penstock.server.workers.operations import letter_facts
from penstock.testing.report import format_result, result_to_dict
from penstock.testing.suite import load_cases, matches_patterns

MAX_BYTES = 16 * 1024 * 1024
"""The size of the rows of a preview at which it ends."""
MAX_LETTERS = 20

Send = Callable[[str, Mapping[str, Any]], int]
"""A function that sends an event with its facts, and returns the number of its bytes."""


@dataclass(frozen=True)
class Work:
    """The surroundings of an operation. `cancelled` returns whether the client has left."""

    session: WarmSession
    send: Send
    cancelled: Callable[[], bool]


def preview(work: Work, file: Path, nodes: Sequence[str], rows: int, seconds: float) -> None:
    """Sends rows of nodes as they arrive, then the dead letters and the end.

    The reason of the end is `rows`, `end` (of the input), `time`, `size`, `cancelled` or `error`.
    """
    plan = app.plan(file)
    spark = work.session.of(plan)
    work.send("started", {"bounded": plan.bounded})
    began, sent, count = time.monotonic(), 0, dict.fromkeys(nodes, 0)
    columns: dict[str, bool] = {}

    def send_rows(node: str, table: pa.Table) -> None:
        nonlocal sent
        facts = {"rows": shown_rows(table)} if node in columns else shown_table(table)
        columns[node] = True
        count[node] += table.num_rows
        sent += work.send("rows", {"node": node, **facts})

    found = app.preview(
        plan, nodes, rows=rows, timeout=seconds, spark=spark, on_rows=send_rows,
        cancelled=lambda: work.cancelled() or sent > MAX_BYTES,
    )  # fmt: skip
    for node, table in found.tables.items():
        if node not in columns:
            send_rows(node, table)
    elapsed = time.monotonic() - began
    reason = (
        "error" if found.error
        else "cancelled" if work.cancelled()
        else "size" if sent > MAX_BYTES
        else "rows" if all(each >= rows for each in count.values())
        else "time" if elapsed >= seconds
        else "end"
    )  # fmt: skip
    letters = read_rows(found.dead_letters.slice(0, MAX_LETTERS))
    work.send(
        "done",
        {
            "reason": reason, "seconds": round(elapsed, 2), "count": count,
            "errors": to_dicts(found.error) if found.error else [],
            "dead_letters": found.dead_letters.num_rows,
            "letters": [letter_facts(each.to_json()) for each in letters],
        },
    )  # fmt: skip


def test(work: Work, file: Path, cases: Sequence[str] = ()) -> None:
    """Sends the result of each test case with its differences, then the numbers."""
    began = time.monotonic()
    found = load_cases(file)
    selected = [each for each in found if not cases or matches_patterns(each, cases)]
    if not selected:
        raise UserError(
            "the pipeline has no test cases" if not found else "no test case has these names",
            code="no-case",
            hint='Add cases below "tests:", each with rows of sources and expected rows of sinks.',
        )
    spark = work.session.of(selected[0].plan)
    work.send("started", {"cases": [each.spec.name for each in selected]})
    passed = 0
    for case in selected:
        if work.cancelled():
            break
        result = case.run(spark)
        passed += result.passed
        report = "" if result.passed else format_result(result)
        work.send("case", {**result_to_dict(result), "report": report})
    failed = len(selected) - passed
    seconds = round(time.monotonic() - began, 2)
    work.send("done", {"passed": passed, "failed": failed, "seconds": seconds})


def try_letter(work: Work, file: Path, letter: str) -> None:
    """Sends whether a dead letter passes the draft now, with its rows at each sink."""
    plan = app.plan(file)
    control = PipelineControl.of(plan)
    found = control.dead_letter(letter)
    work.send("started", {"letter": found.id, "node": found.node})
    trial = try_in_plan(plan, control.state, found, work.session.of(plan))
    work.send(
        "done",
        {
            "passes": trial.passes, "reason": trial.reason,
            "errors": to_dicts(trial.error) if trial.error else [],
            "sinks": [{"node": name, **shown_table(rows)} for name, rows in trial.rows.items()],
        },
    )  # fmt: skip


def replay(work: Work, file: Path, ids: Sequence[str], force: bool) -> None:
    """Replays dead letters from the nodes where they failed, and sends the numbers.

    Unlike the other operations it writes to the sinks and the state of a stopped pipeline.
    """
    plan = app.plan(file)
    control = PipelineControl.of(plan)
    spark = work.session.of(plan)
    work.send("done", asdict(control.replay(ids, force=force, spark=spark)))


OPERATIONS: Mapping[str, Callable[..., None]] = {
    function.__name__: function for function in (preview, test, try_letter, replay)
}
