"""Reading of the options of a component in a file of another tool, with errors at their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.text import did_you_mean, nearest
from penstock.spec.dialects.options.declarations import LEAST, Option, Options
from penstock.spec.front_end import IGNORED
from penstock.spec.tree.nodes import Entry, MappingNode, Node, ScalarNode, SequenceNode

_HUMAN = re.compile(r"(\d+)\s*([a-zA-Zµ]+)")
_UNITS = {
    **dict.fromkeys(("ns", "nsec", "nanos"), 1e-9), **dict.fromkeys(("us", "usec", "µs"), 1e-6),
    **dict.fromkeys(("ms", "msec", "millis"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
    **dict.fromkeys(("M", "month", "months"), 2630016.0),
    **dict.fromkeys(("y", "year", "years"), 31557600.0),
}  # fmt: skip


@dataclass
class Findings:
    """The errors and the warnings of a file."""

    errors: list[SpecError] = field(default_factory=list)
    warnings: list[SpecError] = field(default_factory=list)

    def error(
        self, message: str, where: Location, code: str = "invalid-value", hint: str | None = None
    ) -> None:
        """Adds an error."""
        self.errors.append(SpecError(message, code=code, where=where, hint=hint))

    def warn(
        self, message: str, where: Location, code: str = "unused-option", hint: str | None = None
    ) -> None:
        """Adds a warning."""
        self.warnings.append(SpecError(message, code=code, where=where, hint=hint))


@dataclass
class Reading:
    """The options of one map of a file. `subject` names it in messages, such as "input kafka"."""

    node: MappingNode
    subject: str
    options: Options
    findings: Findings

    def __post_init__(self) -> None:
        self._check()

    def get(self, name: str) -> Node | None:
        """Returns the value of an option, None if it is absent or empty."""
        node = self.node.get(name)
        if isinstance(node, ScalarNode) and node.value is None:
            return None
        return node

    def where(self, name: str) -> Location:
        """Returns the location of an option, or of the map."""
        entry = self.node.entry(name)
        return entry.key.location if entry else self.node.location

    def value(self, name: str, default: Any = None) -> Any:
        """Returns the plain value of an option."""
        node = self.get(name)
        return default if node is None else node.data()

    def text(self, name: str, default: str = "") -> str:
        """Returns the text of an option, as written, without blanks around it."""
        node = self.get(name)
        return node.written.strip() if isinstance(node, ScalarNode) else default

    def texts(self, name: str) -> list[str]:
        """Returns the texts of a list, or of a single text."""
        node = self.get(name)
        if isinstance(node, SequenceNode):
            return [item.written.strip() for item in node.items if isinstance(item, ScalarNode)]
        return [node.written.strip()] if isinstance(node, ScalarNode) else []

    def seconds(self, name: str) -> float | None:
        """Returns a duration as seconds; None if it is absent or invalid, which is reported."""
        node = self.get(name)
        if node is None:
            return None
        value = node.data()
        parts = _HUMAN.findall(value) if isinstance(value, str) else []
        rest = _HUMAN.sub("", value).strip() if isinstance(value, str) else "?"
        if not parts or rest or any(unit not in _UNITS for _, unit in parts):
            self.findings.error(
                f'"{name}" of {self.subject} expects a duration', node.location,
                hint=f"write a number and a unit, as in {name}: 10s, 500ms or 1h30m",
            )  # fmt: skip
            return None
        return float(sum(int(number) * _UNITS[unit] for number, unit in parts))

    def map(self, name: str, options: Options, subject: str | None = None) -> Reading | None:
        """Returns the map of an option; None if it is absent or no map, which is reported."""
        node = self.get(name)
        if node is None:
            return None
        if isinstance(node, MappingNode):
            return Reading(node, subject or f"{name} of {self.subject}", options, self.findings)
        option = self.options.find(name)
        if option is None or option.kind != "map":
            self.findings.error(
                f'"{name}" of {self.subject} expects a map', node.location, code="wrong-type"
            )
        return None

    def maps(self, name: str, options: Options, subject: str | None = None) -> list[Reading]:
        """Returns the maps of a list."""
        node = self.get(name)
        items: Sequence[Node] = node.items if isinstance(node, SequenceNode) else ()
        return [
            Reading(item, subject or f"{name} of {self.subject}", options, self.findings)
            for item in items
            if isinstance(item, MappingNode)
        ]

    def reject(self, name: str, reason: str, hint: str | None = None) -> None:
        """Reports an option that Penstock does not support."""
        self.findings.error(
            f'"{name}" of {self.subject} is not supported: {reason}', self.where(name),
            code="unsupported-option", hint=hint,
        )  # fmt: skip

    def _check(self) -> None:
        for entry in self.node.entries:
            option = self.options.find(entry.name)
            if option is None:
                self._report_unknown(entry)
            elif option.unneeded and entry.value.data() is not None:
                self.findings.warn(
                    f'"{entry.name}" of {self.subject} has no effect: {option.unneeded}',
                    entry.key.location,
                )
                self._check_value(option, entry.value)
            elif option.unsupported and entry.value.data() is not None:
                self.reject(entry.name, option.unsupported)
            else:
                self._check_value(option, entry.value)
        unknown = [name for name in self.node.names() if self.options.find(name) is None]
        for option in self.options.options:
            if option.required and self.get(option.name) is None:
                similar = nearest(option.name, unknown)
                self.findings.error(
                    f'{self.subject} requires "{option.name}"', self.node.location,
                    code="missing-option",
                    hint=f'rename "{similar}"' if similar else f"add {option.name}: ...",
                )  # fmt: skip

    def _report_unknown(self, entry: Entry) -> None:
        report = self.findings.error if self.options.closed else self.findings.warn
        ending = "" if self.options.closed else IGNORED
        report(
            f'{self.subject} has no option "{entry.name}"{ending}', entry.key.location,
            code="unknown-option", hint=did_you_mean(entry.name, self.options.names),
        )  # fmt: skip

    def _check_value(self, option: Option, node: Node) -> None:
        problem = next(_problems(option, node), None)
        if problem is not None:
            where = node.location if isinstance(node, ScalarNode) else self.where(option.name)
            self.findings.error(
                f'"{option.name}" of {self.subject} expects {problem}', where, code="wrong-type"
            )


def _problems(option: Option, node: Node) -> Iterator[str]:
    value = node.data()
    if value is None or (isinstance(node, ScalarNode) and "${" in node.written):
        return
    if option.choices and str(value).lower() not in option.choices:
        yield f"one of {', '.join(option.choices)}, found {value}"
    least = LEAST.get(option.kind)
    if least is not None:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            yield f"an integer of at least {least}"
        return
    kinds: dict[str, tuple[type | tuple[type, ...], str]] = {
        "integer": (int, "an integer"),
        "boolean": (bool, "true or false"),
        "text": ((str, int, float), "a text"),
        "map": (dict, "a map"),
        "list": ((list, str), "a list"),
    }
    type_, expected = kinds.get(option.kind, (object, ""))
    if not isinstance(value, type_) or (option.kind in {"integer", "text"} and value is True):
        yield expected
