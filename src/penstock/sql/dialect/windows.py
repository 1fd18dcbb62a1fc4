"""Windows of event time: `tumble`, `hop` and `session` over the relations of a query.

The event time is that of the relation: a column of its rows, or a column that a query or a view
below does not select, which is then read below the window by the name `_event_time`. Over rows that
have windows, the same window is the column of the windows, and another one is a window of windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from penstock.core.text import did_you_mean
from penstock.sql.dialect.distinct import distinct_edits
from penstock.sql.dialect.identifiers import HIDDEN, quoted
from penstock.sql.dialect.joins import join_edits, names_column, reference_edits
from penstock.sql.dialect.lineage import (
    is_aggregate,
    merge,
    select_output,
    whole_call,
    window_calls,
)
from penstock.sql.dialect.query import (
    Query,
    Select,
    Source,
    column_name,
    read_query,
    subqueries,
)
from penstock.sql.dialect.relation import Output, Relation, Spec
from penstock.sql.dialect.sessions import groups_by_column, session_edits
from penstock.sql.dialect.text import DialectError, Edit, Translation
from penstock.sql.dialect.tokens import Call, Sql
from penstock.sql.dialect.window_calls import (
    SPARK_WINDOWS,
    WINDOWS,
    check_spark_window,
    read_window,
    window_sql,
)

_SECOND: Spec = ("tumble", 1, 1)
Ctes = Mapping[str, tuple[Query, Output]]


class Windows:
    """The edits of the windows of one query. `output` is what its rows have."""

    def __init__(self, sql: Sql, query: Query, relations: Mapping[str, Relation]) -> None:
        """Visits all selects of a query. Raises DialectError."""
        self.sql, self.query, self.relations = sql, query, relations
        self.edits: list[Edit] = []
        self.outputs: dict[Source, Output] = {}
        self._exposed: dict[Source | Query, bool] = {}
        self._grouped: dict[Select, tuple[str, Spec]] = {}
        self._ctes: dict[Source, Query] = {}
        self.output = self._visit(query, {})

    def translation(self) -> Translation:
        """Returns the text after the edits."""
        return Translation.of(self.sql.text).edit(dict.fromkeys(self.edits))

    def _visit(self, query: Query, ctes: Ctes) -> Output:
        for name, cte in query.ctes.items():
            ctes = {**ctes, name: (cte, self._visit(cte, ctes))}
        return merge(query, [self._visit_select(select, ctes) for select in query.selects])

    def _visit_select(self, select: Select, ctes: Ctes) -> Output:
        for source in select.sources:
            self.outputs[source] = self._source_output(source, ctes)
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
        has_star = any(self.sql.is_sign(item.part[1] - 1, "*") for item in select.items)
        for source in select.sources if len(select.sources) > 1 else ():
            output = self.outputs[source]
            if output.windows:
                column, spec = next(iter(output.windows.items()))
            elif output.time or has_star or self._joins_by(select, source, output.bounds.keys()):
                continue
            else:
                column, spec = HIDDEN, self._expose_window(source)
            if spec is not None and not (column == HIDDEN and spec[0] == "session"):
                found[source] = column, spec
        return found

    def _joins_by(self, select: Select, source: Source, columns: Set[str]) -> bool:
        """Returns whether the condition of a join names one of the columns of a relation."""
        parts = [each.condition or each.using for each in select.sources]
        return any(
            names_column(self.sql, index, source, columns)
            for part in parts if part is not None
            for index in range(*part)
        )  # fmt: skip

    def _source_output(self, source: Source, ctes: Ctes) -> Output:
        if source.query is not None:
            return self._visit(source.query, ctes)
        name = (source.name or "").lower()
        if name in ctes:
            self._ctes[source] = ctes[name][0]
            return ctes[name][1]
        relation = self.relations.get(name)
        return relation.output if relation else Output()

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
            return None
        specs = [read_window(self.sql, call) for call in calls]
        self._check_calls(select, calls, specs)
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

    def _check_calls(self, select: Select, calls: list[Call], specs: list[Spec]) -> None:
        """Checks that a query has one window, which it groups by. Raises DialectError."""
        for call, spec in zip(calls, specs, strict=True):
            if spec != specs[0]:
                raise self._error(
                    call, "a query groups by one window", "window in a query of its own first"
                )
        allowed = [select.clauses.get(name, (0, 0)) for name in ("GROUP", "HAVING")]
        allowed += [item.part for item in select.items]
        for call in calls:
            name = self.sql[call.name].value.lower()
            if not any(first <= call.name < last for first, last in allowed):
                raise self._error(
                    call, f"{name} belongs to SELECT and GROUP BY", f"add GROUP BY {name}(...)"
                )
            if not select.groups:
                raise self._error(call, f"{name} has no GROUP BY", "add GROUP BY window")
            self._check_group(select, call)
        if not any(self._is_group(select, call) for call in calls):
            name = self.sql[calls[0].name].value.lower()
            alias = next((i.name for i in select.items if self._is_call(i.expression)), None)
            raise self._error(
                calls[0], f"the query does not group by {name}",
                f"add {alias or 'window'} to GROUP BY",
            )  # fmt: skip

    def _check_group(self, select: Select, call: Call) -> None:
        """Checks that all groups have the window. Raises DialectError."""
        for first, last in select.groups:
            word = self.sql.word(first)
            if first < call.name < last and word in ("ROLLUP", "CUBE", "GROUPING"):
                name = self.sql[call.name].value.lower()
                message = f"{word} has groups without the window, which are never complete"
                raise self._error(call, message, f"write GROUP BY {name}(...), {word}(...)")

    def _is_call(self, part: tuple[int, int]) -> bool:
        return whole_call(self.sql, part, *WINDOWS) is not None

    def _is_group(self, select: Select, call: Call) -> bool:
        """Returns whether a query groups by a call: by itself, its alias or its number."""
        for first, last in select.groups:
            if first <= call.name < last:
                return True
            name = (column_name(self.sql, (first, last)) or "").lower()
            number = self.sql[first].value if last - first == 1 else ""
            for index, item in enumerate(select.items):
                is_named = bool(name) and (item.name or "window").lower() == name
                if self._is_call(item.expression) and (is_named or number == str(index + 1)):
                    return True
        return False

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
                    raise self._error(call, message, hint)
                reference = self._reference(select, source, HIDDEN)
                return reference if known == spec else window_sql(spec, reference)
        return window_sql(spec, self._time(select, call))

    def _window_column(self, source: Source) -> tuple[str | None, Spec | None]:
        """Returns a column of windows of Spark, and the window. Sessions are structs without it."""
        for column, spec in self.outputs[source].windows.items():
            if spec is None or spec[0] != "session":
                return column, spec
        return None, None

    def _time(self, select: Select, call: Call | None = None) -> str:
        """Returns the event time of the rows that a select reads. Raises DialectError."""
        for source in select.sources:
            output = self.outputs[source]
            if output.time:
                return self._reference(select, source, output.time)
        for source in select.sources:
            column, _ = self._window_column(source)
            if column:
                return f"window_time({self._reference(select, source, column)})"
        for source in select.sources:
            if self.outputs[source].windows and self._expose_window(source):
                return f"window_time({self._reference(select, source, HIDDEN)})"
            if self._expose(source):
                self._leave_out(select)
                return self._reference(select, source, HIDDEN)
        names = [source.name for source in select.sources if source.name]
        start = self.sql[call.name].start if call else self.sql[select.part[0]].start
        end = self.sql[call.closing].end if call else self.sql[select.part[0]].end
        raise DialectError(
            "a window needs an event time" + (f', and "{names[0]}" has none' if names else ""),
            start, end, self._time_hint(names), "no-event-time",
        )  # fmt: skip

    def _leave_out(self, select: Select) -> None:
        """Leaves the event time that was added to an input out of the columns of `*`."""
        for item in select.items:
            last = item.part[1] - 1
            if self.sql.is_sign(last, "*") and (item.part[1] - item.part[0]) in (1, 3):
                end = self.sql[last].end
                self.edits.append(Edit(end, end, f" EXCEPT ({HIDDEN})"))

    def _time_hint(self, names: list[str]) -> str:
        unknown = [name for name in names if name.lower() not in self.relations]
        if unknown and self.relations:
            similar = did_you_mean(unknown[0], [r.name for r in self.relations.values()])
            return similar or "read a table with a watermark"
        return "add WATERMARK FOR time AS time - INTERVAL '5 seconds' to the table"

    def _expose(self, source: Source) -> bool:
        """Adds the event time to the rows of a relation, as `_event_time`, if it has one."""
        if source not in self._exposed:
            self._exposed[source] = False
            query = source.query or self._ctes.get(source)
            relation = self.relations.get((source.name or "").lower())
            if query is not None:
                self._exposed[source] = self._expose_query(query)
            elif relation is not None and relation.text is not None:
                self._exposed[source] = self._expose_view(source, relation)
        return self._exposed[source]

    def _expose_query(self, query: Query) -> bool:
        if query in self._exposed:
            return self._exposed[query]
        plain = all(
            not select.groups and not select.distinct and not is_aggregate(self.sql, select)
            for select in query.selects
        )
        if not plain or any(operator != "UNION ALL" for operator in query.operators):
            return False
        try:
            times = [self._time(select) for select in query.selects]
        except DialectError:
            return False
        for select, time in zip(query.selects, times, strict=True):
            start = self.sql[select.first_item].start
            self.edits.append(Edit(start, start, f"{time} AS {HIDDEN}, "))
        self._exposed[query] = True
        return True

    def _expose_window(self, source: Source) -> Spec | None:
        """Adds the window of the groups of a relation to its rows, as `_event_time`, if it has one.

        Returns the window.
        """
        query = source.query or self._ctes.get(source)
        relation = self.relations.get((source.name or "").lower())
        if query is not None:
            return self._expose_window_of(query)
        if relation is None or relation.text is None:
            return None
        sql = Sql(relation.text)
        query = read_query(sql)
        if query is None:
            return None
        try:
            view = Windows(sql, query, relation.relations)
        except DialectError:
            return None
        spec = view._expose_window_of(query)
        if spec is not None:
            self._read_view(source, relation, view)
        return spec

    def _expose_window_of(self, query: Query) -> Spec | None:
        select = query.selects[0] if len(query.selects) == 1 else None
        if select is None:
            return None
        text, spec = self._grouped.get(select) or self._passed_window(select)
        if text is not None and not self._exposed.setdefault(query, False):
            self._exposed[query] = True
            end = self.sql[select.items[-1].part[1] - 1].end
            self.edits.append(Edit(end, end, f", {text} AS {HIDDEN}"))
        return spec

    def _passed_window(self, select: Select) -> tuple[str | None, Spec | None]:
        """Returns the window of the rows of a select without groups, and its specification.

        The text is None if the rows have the column without an edit, by a wildcard.
        """
        is_plain = not select.groups and not select.distinct and not is_aggregate(self.sql, select)
        if not is_plain or len(select.sources) != 1:
            return None, None
        (source,) = select.sources
        column, spec = self._window_column(source)
        if column is not None:
            return self._reference(select, source, column), spec
        spec = self._expose_window(source)
        has_star = any(self.sql.is_sign(item.part[1] - 1, "*") for item in select.items)
        return (None if has_star or spec is None else HIDDEN), spec

    def _expose_view(self, source: Source, relation: Relation) -> bool:
        """Reads the query of a view with its event time, in place of the view."""
        sql = Sql(relation.text or "")
        query = read_query(sql)
        if query is None:
            return False
        try:
            view = Windows(sql, query, relation.relations)
        except DialectError:
            return False
        if not view._expose_query(query):
            return False
        self._read_view(source, relation, view)
        return True

    def _read_view(self, source: Source, relation: Relation, view: Windows) -> None:
        """Reads the query of a view in place of the view."""
        first, last = source.part
        alias = "" if source.alias else f" AS {quoted(source.name or relation.name)}"
        text = f"({view.translation().text}){alias}"
        self.edits.append(Edit(self.sql[first].start, self.sql[last - 1].end, text))

    def _reference(self, select: Select, source: Source, column: str) -> str:
        owner = source.alias or source.name
        if len(select.sources) == 1 or owner is None:
            return quoted(column)
        return f"{quoted(owner)}.{quoted(column)}"

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
        if "window" not in inputs or any(self._is_call(item.expression) for item in select.items):
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

    def _error(self, call: Call, message: str, hint: str) -> DialectError:
        start, end = self.sql[call.name].start, self.sql[call.closing].end
        return DialectError(message, start, end, hint, "invalid-window")
