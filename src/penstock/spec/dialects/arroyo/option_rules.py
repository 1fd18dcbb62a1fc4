"""Rules for options: the option of Penstock, and its value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.spec.script.dialect import Kind
from penstock.spec.script.options import Option

_EXPRESSION = re.compile(r"\$\{[^{}]*\}")
_BOOLEANS = {"yes": "true", "no": "false"}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_ITEM = re.compile(r"(?:\$\{[^{}]*\}|[^,])+")

Value = str | int | float | bool | list[str] | dict[str, str]

SWITCH = {"true": "", "false": ""}
"""The values of an option that has no effect on results."""


@dataclass(frozen=True)
class Key:
    """An option of Arroyo. `target` is the dotted option of Penstock; empty without effect."""

    target: str | tuple[str, ...] = ""
    """The dotted option, or its parts if one of them has a dot itself."""
    values: Mapping[str, Value | Unsupported] = field(default_factory=dict)
    """The values by the text of Arroyo. Other values are errors; empty for all values."""
    convert: Callable[[str], Value] | None = None
    also: Mapping[str, Value] = field(default_factory=dict)
    """Further options that this one implies."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the option of Penstock; none without effect."""
        return (
            self.target
            if isinstance(self.target, tuple)
            else (*filter(None, self.target.split(".")),)
        )

    def spelled(self, text: str) -> str:
        """Returns a value as `values` spell it: yes or no of a boolean is true or false."""
        is_boolean = self.values.keys() <= {"true", "false"}
        return _BOOLEANS.get(text.strip().lower(), text) if is_boolean else text


@dataclass(frozen=True)
class Unsupported:
    """An option or value of Arroyo without a counterpart, the reason, and the alternative."""

    hint: str
    reason: str = ""


Rule = Key | Unsupported
Rules = Mapping[str, Rule]


@dataclass(frozen=True)
class Connector:
    """A connector of Arroyo. `type` is the connector of Penstock."""

    type: str
    both: Rules = field(default_factory=dict)
    source: Rules = field(default_factory=dict)
    sink: Rules = field(default_factory=dict)
    marks: frozenset[str] = frozenset()
    """The options that only Arroyo has, which select `defaults`."""
    defaults: Mapping[str, Value] = field(default_factory=dict)
    """Options of a source, where Arroyo has another default."""
    combine: Callable[[Sequence[Option], str], list[Option]] | None = None
    """Combines several options into one, for the table of this name."""
    sink_defaults: Mapping[str, Value] = field(default_factory=dict)
    """Options of a sink, where Arroyo has another default."""
    required: tuple[str, ...] = ()
    """The options that a table needs, unless its connection has them."""
    of_format: Rules = field(default_factory=dict)
    """The rules of options of the format of a sink that has no format in Penstock."""

    def rules(self, kind: Kind) -> dict[str, Rule]:
        """Returns the rules of a source, a lookup table or a sink."""
        return {**self.both, **(self.sink if kind == "sink" else self.source)}


def is_true(text: str) -> bool:
    """Returns whether an option is set."""
    return text.strip().lower() in ("true", "yes", "1")


def with_unit(unit: str) -> Callable[[str], Value]:
    """Returns the conversion of a number to a duration. An interval remains as it is."""

    def convert(text: str) -> Value:
        number = text.strip()
        is_interval = _NUMBER.match(number) and not _NUMBER.fullmatch(number)
        return number if is_interval else f"{number} {unit}"

    return convert


def split_list(text: str) -> Value:
    """Returns the items of a list with commas; a text that is one expression as it is."""
    items = [item.strip() for item in _split(text) if item.strip()]
    return items[0] if len(items) == 1 and _EXPRESSION.fullmatch(items[0]) else items


def split_map(separator: str) -> Callable[[str], Value]:
    """Returns the conversion of `a=1,b=2`, with this separator in place of `=`."""

    def convert(text: str) -> Value:
        if _EXPRESSION.fullmatch(text.strip()):
            return text
        pairs = (item.partition(separator) for item in _split(text) if item.strip())
        return {name.strip(): value.strip() for name, _, value in pairs}

    return convert


def _split(text: str) -> list[str]:
    """Returns the parts between the commas outside of expressions."""
    return [match[0] for match in _ITEM.finditer(text)]


def url_of_mqtt(text: str) -> Value:
    """Returns a URL of MQTT with a scheme of MQTT in place of `tcp` or `ssl`."""
    scheme, separator, rest = text.strip().partition("://")
    return {"tcp": "mqtt", "ssl": "mqtts"}.get(scheme.lower(), scheme) + separator + rest


def urls_of_nats(text: str) -> Value:
    """Returns the URLs of servers with commas; a server without a scheme has that of NATS."""
    servers = split_list(text)
    if not isinstance(servers, list):
        return servers
    return [server if "://" in server else f"nats://{server}" for server in servers]


def template_of(column: str) -> Value:
    """Returns the template of the values of a column."""
    return f"{{{column.strip()}}}"


def whole_match(pattern: str) -> Value:
    """Returns the regular expression of whole texts in which another one has a match."""
    flags = re.match(r"\(\?([a-z]+)\)", pattern)
    inner = f"(?{flags[1]}:{pattern[flags.end() :]})" if flags else f"(?:{pattern})"
    return f"(?s:.*){inner}(?s:.*)"
