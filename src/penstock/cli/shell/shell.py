"""Shell: checks definitions, and runs queries on one session until their end or Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from penstock import app
from penstock.cli.shell.definitions import NAME, Definitions, Entry, read_entries
from penstock.cli.shell.results import print_results, print_rows
from penstock.core.errors import PenstockError, UserError, raise_all
from penstock.core.text import plural
from penstock.core.units import duration_text
from penstock.plan.model import Plan
from penstock.plan.rewrite import isolate_state
from penstock.runtime.dead_letters import DeadLetters
from penstock.runtime.state import StateDirectory
from penstock.spec.models import Runtime
from penstock.spec.script.statements import CreateTable, Insert

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.runtime.handle import RunHandle
    from penstock.runtime.supervise import Outcome

SINK = "result"
"""The sink of a query whose rows are printed, as scripts name it."""
MAX_REASONS = 3
_POLL_SECONDS = 0.1
_INCOMPLETE = {"no-sinks", "no-sources", "unwritten-table"}
"""Errors of a script without queries."""


@dataclass
class Shell:
    """Definitions, and a session that may still be starting.

    `directory` has the state of the queries. A query starts without state, so it reads its sources
    from their `start` on.
    """

    spark: Future[SparkSession]
    directory: Path
    overrides: Sequence[str] = ()
    definitions: Definitions = field(default_factory=Definitions)
    inserts: list[Entry] = field(default_factory=list)
    """The INSERT statements that ran without errors."""
    last_query: Entry | None = None
    """The last query whose rows were printed."""
    _runs: int = 0

    def execute(self, text: str) -> None:
        """Executes statements in their order. Raises PenstockError at the first that fails."""
        for entry in read_entries(text):
            if entry.is_query:
                self.run(entry)
            else:
                print(self.define(entry))

    def load(self, text: str, name: str) -> int:
        """Adds the definitions of a script. Returns the number of its queries, which do not run."""
        queries = 0
        for entry in read_entries(text, name):
            if entry.is_query:
                queries += 1
            else:
                self.define(entry)
        return queries

    def define(self, entry: Entry) -> str:
        """Adds a definition and returns a line about it. Raises UserError if it is wrong."""
        defined = self.definitions.add(entry)
        errors = self._check(entry, defined)
        if errors and _has_connector(entry):
            errors_as_sink = self._check(_as_sink(entry), defined)
            if not errors_as_sink:
                defined = defined.add(replace(entry, sink_only=True))
            if not errors_as_sink or (_is_unknown(errors) and not _is_unknown(errors_as_sink)):
                errors = errors_as_sink
        raise_all(errors)
        self.definitions = defined
        return entry.summary

    def drop(self, name: str) -> None:
        """Removes a definition. Raises UserError if another one reads it."""
        remaining = self.definitions.remove(name)
        for entry in remaining.tables():
            if name.lower() in entry.relations:
                raise UserError(
                    f"{entry.summary} reads {name}", code="in-use",
                    hint=f"Enter \\drop {entry.key} first.",
                )  # fmt: skip
        self.definitions = remaining

    def runtime(self) -> Runtime:
        """Returns the runtime settings of the definitions."""
        script = self.definitions.script()
        partial = (
            app.script_plan(script, name=NAME, overrides=self.overrides)[0] if script else None
        )
        return Runtime() if partial is None else partial.plan.spec.runtime

    def plan(self, entry: Entry) -> Plan:
        """Returns the plan of a query. Raises UserError with all errors."""
        script = self.definitions.script(entry)
        partial, errors = app.script_plan(script, name=NAME, overrides=self.overrides)
        raise_all(errors)
        assert partial is not None
        return partial.plan

    def run(self, entry: Entry) -> None:
        """Runs a query to its end, or until Ctrl-C. Raises PenstockError."""
        if not isinstance(entry.statement, Insert):
            self.last_query = entry
            if self._run_constant(entry):
                return
        self._runs += 1
        plan = isolate_state(self.plan(entry), self.directory / str(self._runs))
        if not isinstance(entry.statement, Insert):
            plan = print_results(plan, SINK)
        began = monotonic()
        handle = app.start(plan, spark=self.spark.result().newSession(), options=app.RunOptions())
        outcome = _wait(handle)
        seconds = duration_text(round(monotonic() - began, 1))
        _print_dead_letters(DeadLetters(StateDirectory(plan.state).dead_letters).read())
        if outcome.errors:
            raise next(iter(outcome.errors.values()))
        rows = sum(flow.rows for flow in handle.metrics.flows.values() if flow.kind == "sink")
        print(f"({plural(rows, 'row')} in {seconds})")
        if isinstance(entry.statement, Insert):
            self.inserts.append(entry)

    def _run_constant(self, entry: Entry) -> bool:
        """Runs a query that reads no table. Returns whether it is one."""
        if entry.relations:
            return False
        from pyspark.errors import PySparkException

        from penstock.engine.variants import variants_to_json

        try:
            table = variants_to_json(self.spark.result().sql(entry.text)).toArrow()
        except PySparkException as error:
            message = (error.getMessage() or str(error)).splitlines()[0]
            raise UserError(message, code="invalid-sql") from error
        print_rows(table)
        return True

    def _check(self, entry: Entry, definitions: Definitions) -> list[PenstockError]:
        """Returns the errors of a definition beside others."""
        others = Definitions(
            {key: each for key, each in definitions.entries.items() if key != entry.key}
        )
        script = f"{entry.text};\n{others.script()}"
        _, errors = app.script_plan(script, name=NAME, overrides=self.overrides)
        return [error for error in errors if error.code not in _INCOMPLETE]


def _has_connector(entry: Entry) -> bool:
    return isinstance(entry.statement, CreateTable) and entry.statement.options is not None


def _is_unknown(errors: Sequence[PenstockError]) -> bool:
    """Returns whether the connector does not exist."""
    return any(error.code == "unknown-type" for error in errors)


def _as_sink(entry: Entry) -> Entry:
    """Returns a table with an INSERT, so that the table is checked as a sink."""
    assert isinstance(entry.statement, CreateTable)
    columns = entry.statement.columns.columns
    values = [f"CAST(NULL AS {column.type.value})" for column in columns] or ["*"]
    name = entry.statement.name.value
    text = (
        f"{entry.text};\nINSERT INTO `{name}` SELECT {', '.join(values)} FROM shell_rows;\n"
        "CREATE TABLE shell_rows WITH (connector = 'impulse', rate = 1)"
    )
    return replace(entry, text=text)


def _wait(handle: RunHandle) -> Outcome:
    """Waits for the end of a run. The first Ctrl-C finishes the batch, the second one does not."""
    stopping = False
    while True:
        try:
            outcome = handle.wait(_POLL_SECONDS)
            if outcome is not None:
                return outcome
        except KeyboardInterrupt:
            handle.stop(reason="Ctrl-C", immediately=stopping)
            if not stopping:
                print("\nstopping; Ctrl-C again stops immediately", file=sys.stderr)
            stopping = True


def _print_dead_letters(letters: pa.Table) -> None:
    """Prints the number of dead letters, and the first reasons."""
    if not letters.num_rows:
        return
    print(plural(letters.num_rows, "record") + " failed:", file=sys.stderr)
    reasons = dict.fromkeys(
        f"  {letter['node']}: {letter['message']}"
        for letter in letters.select(["node", "message"]).to_pylist()
    )
    for reason in list(reasons)[:MAX_REASONS]:
        print(reason, file=sys.stderr)
    if len(reasons) > MAX_REASONS:
        more = plural(len(reasons) - MAX_REASONS, "more reason", "more reasons")
        print(f"  ... and {more}", file=sys.stderr)
