"""Shell: checks definitions, and runs queries on one session until their end or Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from penstock import app
from penstock.cli.metrics_table import format_elapsed
from penstock.cli.shell.checks import check_statement
from penstock.cli.shell.constant import QUERY, compute
from penstock.cli.shell.definitions import Definitions, Entry, read_entries
from penstock.cli.shell.input import NAME
from penstock.cli.shell.results import print_results, print_rows
from penstock.cli.shell.script import Script
from penstock.core.errors import PenstockError, UserError, flatten_errors, raise_all
from penstock.core.text import plural, printable
from penstock.plan.model import Plan
from penstock.plan.rewrite import isolate_state
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.state.directory import StateDirectory
from penstock.spec.runtime_models import Runtime
from penstock.spec.script.statements import CreateTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from penstock.runtime.handle import RunHandle
    from penstock.runtime.outcome import Outcome

SINK = "result"
"""The sink of a query whose rows are printed, as scripts name it."""
MAX_REASONS = 3
_POLL_SECONDS = 0.1
_INCOMPLETE = {"empty-file", "no-sinks", "no-sources", "unwritten-table"}
"""Errors of a script without queries."""
_OF_OUTPUT = {"not-streamable", "unexpected-state", "unexpected-chance"}
"""Errors of a view that other queries can read nevertheless."""


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
    """The INSERT statements that ran without errors, and whose tables exist."""
    last_query: Entry | None = None
    """The last query whose rows were printed."""
    _runs: int = 0

    def execute(self, entry: Entry) -> None:
        """Executes a statement of scripts. Raises PenstockError."""
        check_statement(entry, self.definitions)
        if entry.is_query and not self.definitions.is_filled(entry.written):
            self.run(entry)
        elif entry.keeps_existing and self.definitions.has(entry):
            print(f"{entry.kind} {entry.key} exists")
        else:
            before = self.definitions
            self.define(entry)
            try:
                self._check_columns(entry)
            except BaseException:
                self.definitions = before
                raise
            print(entry.summary)

    def load(self, text: str, name: str) -> int:
        """Adds the definitions of a script. Returns the number of its queries, which do not run."""
        queries = 0
        for entry in read_entries(text, name):
            if entry.is_query and not self.definitions.is_filled(entry.written):
                queries += 1
            else:
                self.define(entry)
        return queries

    def define(self, entry: Entry) -> None:
        """Adds a definition. Raises UserError if it is wrong."""
        if entry.is_query:
            defined = self.definitions.add_rows(entry)
        else:
            defined = self.definitions.add(entry)
        errors = self._check(defined, entry)
        if errors and entry.has_connector:
            errors_as_sink = self._check(defined, entry, *_as_sink(entry))
            if not errors_as_sink:
                defined = defined.add(replace(entry, sink_only=True))
            if not errors_as_sink or (_is_unknown(errors) and not _is_unknown(errors_as_sink)):
                errors = errors_as_sink
        raise_all(errors)
        if entry.declares_sink:
            defined = defined.add(replace(entry, sink_only=True))
        self.definitions = defined

    def drop(self, key: str) -> None:
        """Removes a definition. Raises UserError if another one reads it."""
        for reader in self.definitions.readers(key):
            raise UserError(
                f"{reader.summary} reads {key}", code="in-use",
                hint=f"Enter DROP {reader.kind.upper()} {reader.key} first.",
            )  # fmt: skip
        self.inserts = [each for each in self.inserts if key not in self.definitions.used(each)]
        self.definitions = self.definitions.remove(key)

    def runtime(self) -> Runtime:
        """Returns the runtime settings of the definitions."""
        script = Script.of(self.definitions.readable())
        if not script.entries:
            return Runtime()
        partial, _ = app.script_plan(script.text, name=NAME, overrides=self.overrides)
        return Runtime() if partial is None else partial.plan.spec.runtime

    def plan(self, entry: Entry) -> Plan:
        """Returns the plan of a query. Raises UserError with all errors."""
        with self.planned(entry) as plan:
            return plan

    @contextmanager
    def planned(self, query: Entry) -> Iterator[Plan]:
        """Yields the plan of a query. Locates the errors that are raised inside in the input."""
        script = self._script(query)
        with script.relocating():
            yield self._plan(script)

    def columns(self, query: Entry) -> pa.Schema:
        """Returns the columns of a query whose rows are printed. Raises PenstockError."""
        from penstock.engine.catalyst.columns import to_arrow

        session = self.spark.result().newSession()
        if not query.reads(self.definitions.entries):
            return compute(query, self.definitions, self.overrides, session).schema
        with self.planned(query) as plan:
            return to_arrow(app.types(plan, session)[QUERY])

    def run(self, entry: Entry) -> None:
        """Runs a query to its end, or until Ctrl-C. Raises PenstockError."""
        if entry.written is None:
            self.last_query = entry
            if not entry.reads(self.definitions.entries):
                session = self.spark.result().newSession()
                print_rows(compute(entry, self.definitions, self.overrides, session))
                return
        with self.planned(entry) as plan:
            self._run(entry, plan)
        if entry.written is not None:
            self.inserts.append(entry)

    def _run(self, entry: Entry, plan: Plan) -> None:
        self._runs += 1
        plan = isolate_state(plan, self.directory / str(self._runs))
        first_rows = _first_rows(entry, plan)
        if entry.written is None:
            plan = print_results(plan, SINK, only_inserts=first_rows is not None)
        began = monotonic()
        handle = app.start(plan, spark=self.spark.result().newSession(), options=app.RunOptions())
        outcome = _wait(handle, first_rows)
        elapsed = format_elapsed(monotonic() - began)
        _print_dead_letters(DeadLetters(StateDirectory(plan.state).dead_letters).read())
        if outcome.errors:
            raise next(iter(outcome.errors.values()))
        print(f"({plural(_written(handle), 'row')} in {elapsed})")

    def _script(self, query: Entry) -> Script:
        """Returns the script of a query, with the definitions that the query needs."""
        return Script.of(self.definitions.of_query(query), query)

    def _plan(self, script: Script) -> Plan:
        """Returns the plan of a script. Raises UserError, located in the script."""
        partial, errors = app.script_plan(script.text, name=NAME, overrides=self.overrides)
        if errors:
            errors = self._with_known_names(script) or errors
            raise_all([e for e in errors if e.code not in _INCOMPLETE] or errors)
        assert partial is not None
        return app.with_primary_keys(partial.plan)

    def _with_known_names(self, script: Script) -> list[PenstockError]:
        """Returns the errors of a script, with hints that know the names of all definitions."""
        others = self.definitions.readable().entries.values()
        text = Script((*script.entries, *(e for e in others if e not in script.entries))).text
        _, errors = app.script_plan(text, name=NAME, overrides=self.overrides)
        return [error for error in errors if script.entry_at(error.where) is not None]

    def _check(self, definitions: Definitions, entry: Entry, *use: Entry) -> list[PenstockError]:
        """Returns the errors of a definition beside others. `use` are queries that use it."""
        script = Script.of(definitions.readable(), *([] if entry.is_filled else [entry]), *use)
        _, errors = app.script_plan(script.text, name=NAME, overrides=self.overrides)
        return [script.relocate(error) for error in errors if error.code not in _INCOMPLETE]

    def _check_columns(self, entry: Entry) -> None:
        """Raises the errors that Spark finds in the query of a view, or of the rows of a table.

        Errors of the tables that the query reads are left to its readers.
        """
        if not (entry.is_view or entry.is_query):
            return
        [query] = read_entries(f"SELECT * FROM `{entry.written or entry.key}`")
        script = self._script(query)
        try:
            app.types(self._plan(script), self.spark.result().newSession())
        except PenstockError as error:
            found = [(each, script.entry_at(each.where)) for each in flatten_errors(error)]
            own = [each for each, at in found if at is not None and at[0] == entry]
            raise_all(script.relocate(e) for e in own if e.code not in _OF_OUTPUT)


def _is_unknown(errors: Sequence[PenstockError]) -> bool:
    """Returns whether the connector does not exist."""
    return any(error.code == "unknown-type" for error in errors)


def _first_rows(entry: Entry, plan: Plan) -> int | None:
    """Returns the number of rows after which a query is complete, before its sources end."""
    if entry.written is not None:
        return None
    changing = any(plan.nodes[name].operation for name in plan.nodes[QUERY].inputs)
    return None if changing else entry.first_rows


def _written(handle: RunHandle) -> int:
    """Returns the number of rows that a run has written."""
    return sum(flow.rows for flow in handle.metrics.flows.values() if flow.kind == "sink")


def _as_sink(entry: Entry) -> Iterator[Entry]:
    """Returns statements that write a table, so that the table is checked as a sink."""
    assert isinstance(entry.statement, CreateTable)
    columns = entry.statement.columns.columns
    values = [f"CAST(NULL AS {column.type.value})" for column in columns] or ["*"]
    name = entry.statement.name.value
    return read_entries(
        f"INSERT INTO `{name}` SELECT {', '.join(values)} FROM shell_rows;\n"
        "CREATE TABLE shell_rows WITH (connector = 'impulse', rate = 1)"
    )


def _wait(handle: RunHandle, first_rows: int | None) -> Outcome:
    """Waits for the end of a run, and stops it after `first_rows` rows.

    The first Ctrl-C finishes the batch, the second one does not.
    """
    stopping = False
    while True:
        try:
            outcome = handle.wait(_POLL_SECONDS)
            if outcome is not None:
                return outcome
            if first_rows is not None and _written(handle) >= first_rows:
                handle.stop(reason="LIMIT")
        except KeyboardInterrupt:
            handle.stop(reason="Ctrl-C", immediately=stopping)
            if not stopping:
                print("\nstopping; Ctrl-C again stops immediately", file=sys.stderr)
            stopping = True


def _print_dead_letters(dead_letters: pa.Table) -> None:
    """Prints the number of dead letters, and the first reasons."""
    if not dead_letters.num_rows:
        return
    print(plural(dead_letters.num_rows, "record") + " failed:", file=sys.stderr)
    reasons = dict.fromkeys(
        f"  {letter['node']}: {letter['message']}"
        for letter in dead_letters.select(["node", "message"]).to_pylist()
    )
    for reason in list(reasons)[:MAX_REASONS]:
        print(printable(reason), file=sys.stderr)
    if len(reasons) > MAX_REASONS:
        more = plural(len(reasons) - MAX_REASONS, "more reason", "more reasons")
        print(f"  ... and {more}", file=sys.stderr)
