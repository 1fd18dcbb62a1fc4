"""Windows of event time: `tumble`, `hop` and `session` over the relations of a query.

Over rows that have windows, the same window is the column of the windows, and another one is a
window of windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from penstock.sql.dialect.distinct import distinct_edits
from penstock.sql.dialect.event_times import HIDDEN, EventTimes
from penstock.sql.dialect.joins import conjuncts, join_edits, names_column, reference_edits
from penstock.sql.dialect.lineage import merge, select_output, window_calls
from penstock.sql.dialect.relation import InputRelation, Output, Spec
from penstock.sql.dialect.sessions import COLUMN, groups_by_column, key_edit_text, session_edits
from penstock.sql.dialect.window_calls import (
    SPARK_WINDOWS,
    check_spark_window,
    read_window,
    spark_window,
    window_sql,
)
from penstock.sql.dialect.window_groups import check_calls, is_group, is_window, window_error
from penstock.sql.text.calls import whole_call
from penstock.sql.text.clauses import Part, Query, Select, Source
from penstock.sql.text.edits import Edit
from penstock.sql.text.query import column_name, subqueries
from penstock.sql.text.sql import Call, Sql

_SECOND: Spec = ("tumble", 1, 1)
Ctes = Mapping[str, tuple[Query, Output]]


class Windows(EventTimes):
    """The edits of the windows of one query. `output` is what its rows have."""

    def __init__(self, sql: Sql, query: Query, relations: Mapping[str, InputRelation]) -> None:
        """Visits all selects of a query. Raises DialectError."""
        super().__init__(sql, query, relations)
        self.output = self._visit(query, {})

    def _visit(self, query: Query, ctes: Ctes) -> Output:
        for name, cte in query.ctes.items():
            output = self._renamed(self._visit(cte, ctes), cte.columns)
            ctes = {**ctes, name: (cte, output)}
        return merge(query, [self._visit_select(select, ctes) for select in query.selects])

    def _visit_select(self, select: Select, ctes: Ctes) -> Output:
        for source in select.sources:
            self.outputs[source] = self._renamed(self._source_output(source, ctes), source.columns)
        for query in subqueries(self.sql, select):
            self._visit(query, ctes)
        for call in self.sql.calls(*SPARK_WINDOWS, first=select.part[0], last=select.part[1]):
            check_spark_window(self.sql, call)
        spec = self._translate_calls(select)
        output = select_output(self.sql, select, self.outputs)
        self._translate_row_time(select)
        windowed = spec is not None or self._groups_by_window(select)
        if windowed:
            self.edits += distinct_edits(self.sql, select)
        self.edits += join_edits(self.sql, select, self.outputs, self._join_windows(select))
        self.edits += reference_edits(self.sql, select, self.outputs)
        return output

    def _join_windows(self, select: Select) -> dict[Source, tuple[str, Spec]]:
        """Returns the columns of windows of the relations of a join, which may not select them."""
        found: dict[Source, tuple[str, Spec]] = {}
        has_star = any(item.is_star for item in select.items)
        for source in select.sources if len(select.sources) > 1 else ():
            output = self.outputs[source]
            if output.windows:
                column, spec = next(iter(output.windows.items()))
            elif output.time or has_star or self._joins_by_bounds(select, source):
                continue
            else:
                column, spec = HIDDEN, self._expose_window(source)
            if spec is not None and not (column == HIDDEN and spec[0] == "session"):
                found[source] = column, spec
        if len(found) > 1:
            hidden = [source.name for source, (column, _) in found.items() if column == HIDDEN]
            self.hidden |= {name for name in hidden if name and name.lower() in self.in_place}
        return found

    def _joins_by_bounds(self, select: Select, source: Source) -> bool:
        """Returns whether a condition compares bounds of a relation's windows with another time.

        USING names them.
        """
        bounds = self.outputs[source].bounds.keys()
        using = [each.using for each in select.sources if each.using is not None]
        if any(self._names(part, source, bounds) for part in using):
            return True
        others = [each for each in select.sources if each is not source]
        conditions = [*(each.condition for each in select.sources), select.clauses.get("WHERE")]
        return any(
            self._names(part, source, bounds)
            and any(self._names(part, other, self._times(other)) for other in others)
            for condition in conditions
            for part in conjuncts(self.sql, condition)
        )

    def _times(self, source: Source) -> Set[str]:
        """Returns the columns of a relation that are event times, windows or their bounds."""
        output = self.outputs[source]
        return {(output.time or "").lower(), *output.windows, *output.bounds} - {""}

    def _names(self, part: Part, source: Source, columns: Set[str]) -> bool:
        return any(names_column(self.sql, index, source, columns) for index in range(*part))

    def _source_output(self, source: Source, ctes: Ctes) -> Output:
        if source.query is not None:
            return self._visit(source.query, ctes)
        name = (source.name or "").lower()
        if name in ctes:
            self._ctes[source] = ctes[name][0]
            return ctes[name][1]
        relation = self.relations.get(name)
        return relation.output if relation else Output()

    def _renamed(self, output: Output, columns: Part | None) -> Output:
        """Returns an output with the names after its alias."""
        if columns is None:
            return output
        parts = self.sql.split(*columns, ",")
        return output.rename([self.sql[first].value for first, _ in parts])

    def _groups_by_window(self, select: Select) -> bool:
        """Returns whether a query groups by a window of Spark, or by a column of windows."""
        inputs = {name for source in select.sources for name in self.outputs[source].windows}
        items = [item.expression for item in select.items]
        parts = [*select.groups, *(items if select.groups else [])]
        return any(
            whole_call(self.sql, part, *SPARK_WINDOWS) is not None
            or (column_name(self.sql, part) or "").lower() in inputs
            for part in parts
        )

    def _translate_calls(self, select: Select) -> Spec | None:
        """Translates the calls of tumble, hop and session. Returns the window of the groups."""
        calls = list(window_calls(self.sql, select.part))
        nested = [source.part for source in select.sources if source.query is not None]
        calls = [c for c in calls if not any(a <= c.name < b for a, b in nested)]
        if not calls:
            self._group_by_sessions(select)
            self._translate_spark_sessions(select)
            return None
        specs = [read_window(self.sql, call) for call in calls]
        check_calls(self.sql, select, calls, specs)
        text = self._window(select, calls[0], specs[0])
        self._grouped[select] = text, specs[0]
        if specs[0][0] == "session":
            is_global = len(select.groups) == 1
            time = self._time(select, calls[0]) if is_global else None
            self.edits += session_edits(self.sql, select, calls, text, time)
        else:
            for call in calls:
                self._replace(select, call, text)
            self._replace_window(select, text)
        return specs[0]

    def _group_by_sessions(self, select: Select) -> None:
        """Groups by the second of a session too where a query groups by a struct of its bounds.

        The second has an event time. Spark merges no rows below if a query groups by sessions
        again.
        """
        for source in select.sources:
            for column, spec in self.outputs[source].windows.items():
                is_session = spec is not None and spec[0] == "session"
                if not is_session or not groups_by_column(self.sql, select, column):
                    continue
                if self._expose_window(source):
                    end = self.sql[select.groups[-1][1] - 1].end
                    session = self._reference(select, source, HIDDEN)
                    self.edits.append(Edit(end, end, f", {window_sql(_SECOND, session)}"))
                return

    def _translate_spark_sessions(self, select: Select) -> None:
        """Translates `session_window` in GROUP BY to the sessions of `session`.

        A gap that is not a literal remains that of Spark.
        """
        first, last = select.part
        nested = [source.part for source in select.sources if source.query is not None]
        calls = [
            call
            for call in self.sql.calls("session_window", first=first, last=last)
            if not any(a <= call.name < b for a, b in nested)
        ]
        if not any(is_group(self.sql, select, call, COLUMN) for call in calls):
            return
        if not all(call.arguments for call in calls):
            return
        if any(whole_call(self.sql, group, "window") for group in select.groups):
            return
        call = calls[0]
        texts = {self.sql.slice(call.name, call.closing + 1) for call in calls}
        spec = spark_window(self.sql, call)
        time = self.sql.slice(*call.arguments[0])
        is_global = len(select.groups) == 1
        if spec is not None and len(texts) == 1:
            text = window_sql(spec, time)
            self._grouped[select] = text, spec
            key = time if is_global else None
            self.edits += session_edits(self.sql, select, calls, text, key, COLUMN)
        elif is_global:
            end = self.sql[select.groups[0][1] - 1].end
            self.edits.append(Edit(end, end, key_edit_text(time)))

    def _window(self, select: Select, call: Call, spec: Spec) -> str:
        """Returns the window in Spark SQL. Raises DialectError without an event time."""
        for source in select.sources:
            column, known = self._window_column(source)
            if column and not self.outputs[source].time:
                reference = self._reference(select, source, column)
                return reference if known == spec else window_sql(spec, reference)
        for source in select.sources:
            if not self.outputs[source].time and (known := self._expose_window(source)):
                if spec[0] == known[0] == "session":
                    message, hint = "there are no sessions of sessions", "group by tumble(...)"
                    raise window_error(self.sql, call, message, hint)
                reference = self._reference(select, source, HIDDEN)
                return reference if known == spec else window_sql(spec, reference)
        return window_sql(spec, self._time(select, call))

    def _replace(self, select: Select, call: Call, text: str) -> None:
        """Writes a call in Spark SQL, and names its column."""
        start, end = self.sql[call.name].start, self.sql[call.closing].end
        for index, item in enumerate(select.items):
            if item.expression != (call.name, call.closing + 1):
                continue
            if not item.has_alias:
                text += " AS window"
            self._group_by_number(select, item.name or "window", index)
        self.edits.append(Edit(start, end, text))

    def _group_by_number(self, select: Select, name: str, index: int) -> None:
        """Groups by the number of an item whose name is a column of the input too."""
        inputs = {each for source in select.sources for each in self.outputs[source].windows}
        for first, last in select.groups:
            column = column_name(self.sql, (first, last)) or ""
            if last - first == 1 and column.lower() == name.lower() and name.lower() in inputs:
                token = self.sql[first]
                self.edits.append(Edit(token.start, token.end, str(index + 1)))

    def _replace_window(self, select: Select, text: str) -> None:
        """Writes the window of GROUP BY in place of `window`, if the input has this column too."""
        inputs = {each for source in select.sources for each in self.outputs[source].windows}
        if "window" not in inputs or any(
            is_window(self.sql, item.expression) for item in select.items
        ):
            return
        for item in select.items:
            first, last = item.expression
            for index in range(first, last):
                token = self.sql[index]
                is_column = token.word == "WINDOW" and not self.sql.is_sign(index - 1, ".")
                if is_column and not self.sql.is_sign(index + 1, "("):
                    alias = " AS window" if last - first == 1 and not item.has_alias else ""
                    self.edits.append(Edit(token.start, token.end, text + alias))

    def _translate_row_time(self, select: Select) -> None:
        for call in self.sql.calls("row_time", first=select.part[0], last=select.part[1]):
            nested = [source.part for source in select.sources if source.query is not None]
            if not call.arguments and not any(a <= call.name < b for a, b in nested):
                start, end = self.sql[call.name].start, self.sql[call.closing].end
                self.edits.append(Edit(start, end, self._time(select, call)))
