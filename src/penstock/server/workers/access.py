"""Access of a connection, in steps: reach, log in, read, write and create, with their remedies.

Nothing is consumed, written or created: the steps are the checks before a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any, Literal

from penstock import discovery
from penstock.core.error_report import to_dicts
from penstock.core.errors import PenstockError, flatten_errors
from penstock.sdk import Component, registry
from penstock.sdk.access import ChecksAccess, ChecksCreation
from penstock.sdk.database.listing import ListedSource
from penstock.sdk.database.table_sink import TableSink
from penstock.sdk.messages.listing import ListedTopics

STEPS = ("reach", "log in", "read", "write", "create")
_NOT_REACHED = frozenset({"unreachable", "forbidden-address", "connection-lost"})
_AFTER_LOGIN = frozenset({"authorization", "unknown-table", "unknown-topic"})
"""The codes of errors that a system answers to a user who has logged in."""


class Access:
    """The steps of a connection of the type `type_`. `options` are those of a node."""

    def __init__(self, type_: str, options: Mapping[str, Any]) -> None:
        self._type, self._options = type_, options
        self._steps: dict[str, dict[str, Any]] = {
            name: {"step": name, "state": "not-tried", "reason": None, "errors": []}
            for name in STEPS
        }

    def check(self) -> list[dict[str, Any]]:
        """Returns all steps. A step after one that failed is not tried."""
        self._list()
        self._check_node("source", "read")
        self._check_node("sink", "write")
        return list(self._steps.values())

    def _list(self) -> None:
        """Reaches the system and logs in by a list of its tables or topics, if it has one."""
        source = dict(registry.importable("source")).get(self._type)
        listed: Callable[[str, Mapping[str, Any]], object]
        if source is not None and issubclass(source, ListedSource):
            listed = discovery.table_names
        elif source is not None and issubclass(source, ListedTopics):
            listed = discovery.topic_names
        else:
            return
        try:
            listed(self._type, {"connection": self._options["connection"]})
        except PenstockError as error:
            self._fail("log in", error)
        else:
            self._succeed(("reach", "log in"))

    def _check_node(self, kind: Literal["source", "sink"], step: str) -> None:
        if any(self._steps[name]["state"] == "failed" for name in ("reach", "log in")):
            return
        if self._type not in dict(registry.importable(kind)):
            self._skip((step,), f"{self._type} is no {kind}")
            return
        try:
            component = discovery.make_component(kind, self._type, self._options)
        except PenstockError as error:
            self._skip((step,), flatten_errors(error)[0].message)
            return
        try:
            if _lacks_table(component):
                self._skip((step,), "the table does not exist: a run creates it")
            elif isinstance(component, ChecksAccess):
                self._succeed_or_skip(step, is_known=component.check_access())
            else:
                component.check()
                self._succeed_or_skip(step, is_known=False)
        except PenstockError as error:
            self._fail(step, error)
        if kind == "sink":
            self._check_creation(component)

    def _check_creation(self, sink: Component[Any]) -> None:
        try:
            known = isinstance(sink, ChecksCreation) and sink.check_creation()
            self._succeed_or_skip("create", is_known=known)
        except PenstockError as error:
            self._fail("create", error)

    def _succeed_or_skip(self, step: str, *, is_known: bool) -> None:
        """Records a check without an error, which proves the privilege only if it is known."""
        if step != "create":
            self._succeed(("reach", "log in"))
        if is_known:
            self._succeed((step,))
        else:
            self._skip((step,), f"no error before a run; {self._type} reports no privileges here")

    def _succeed(self, names: Iterable[str]) -> None:
        for name in names:
            self._steps[name]["state"] = "ok"

    def _skip(self, names: Iterable[str], reason: str) -> None:
        for name in names:
            self._steps[name]["reason"] = reason

    def _fail(self, step: str, error: PenstockError) -> None:
        """Records an error at the step of its code, and the steps that it proves."""
        codes = {each.code for each in flatten_errors(error)}
        if codes & _NOT_REACHED:
            step = "reach"
        elif "authentication" in codes:
            step = "log in"
            self._succeed(("reach",))
        elif codes & _AFTER_LOGIN:
            self._succeed(("reach", "log in"))
        self._steps[step].update(state="failed", errors=to_dicts(error))


def _lacks_table(component: Component[Any]) -> bool:
    """Returns whether a sink would create its table. A table without `create` is an error."""
    if not isinstance(component, TableSink) or not component.config.create:
        return False
    with closing(component.connect()) as connection:
        return connection.columns(component.table) is None
