"""Translation of the options of a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.core.errors import SpecError
from penstock.core.location import Location
from penstock.core.text import did_you_mean, did_you_mean_one_of, nearest
from penstock.spec.dialects.arroyo.connectors import CONNECTORS, MISSING, find_connector
from penstock.spec.dialects.arroyo.formats import (
    PROFILE,
    REGISTERED,
    default_options,
    format_name,
    format_rules,
    is_of_arroyo,
)
from penstock.spec.dialects.arroyo.option_rules import (
    Connector,
    Key,
    Rule,
    Unsupported,
    Value,
    is_true,
)
from penstock.spec.dialects.arroyo.values import (
    located,
    text_of,
    value_node,
    with_expressions,
    with_value,
    written_text,
)
from penstock.spec.script.dialect import Kind
from penstock.spec.script.options import Option
from penstock.spec.script.tokens import Text
from penstock.spec.script.tree_nodes import list_node
from penstock.spec.tree.nodes import File, Node, ScalarNode

_GROUPS = (
    "source.", "sink.", "rolling_policy.", "schema_registry.", "partitioning.", "filename.",
    "multipart.", "shuffle_by_partition.",
)  # fmt: skip
_IDLE = ("idle_micros", "idle")
"""The idle time of a watermark, which only a source has."""
_MESSAGES = re.compile(r"subscription_messages\.(\d+)\Z")


def translate_options(
    file: File, options: Sequence[Option], kind: Kind, table: str, types: Collection[str] = ()
) -> list[Option]:
    """Returns the options of a table in Penstock's names. Other options remain as they are.

    `table` is the name of the table, and `types` are those of its columns. Raises SpecError at an
    option or value without a counterpart.
    """
    named = {option.name: option for option in options}
    connector = _connector(file, named, kind)
    texts = {name: text_of(option) for name, option in named.items()}
    is_of_it = is_of_arroyo(texts.get("connector", ""), connector, kind, texts)
    _check_registry(file, named, connector)
    if is_of_it:
        _check_required(named, connector, kind)
    rules: dict[str, Rule] = {**connector.rules(kind), **format_rules(connector, texts, kind)}
    if is_of_it:
        options = with_expressions(options)
    if connector.combine is not None:
        options = connector.combine(options, table)
    if kind != "source" and _IDLE[0] in named:
        options = [option for option in options if option.name not in _IDLE]
    translated = [*_translate_all(file, options, rules, connector)]
    names = {option.name for option in translated}
    defaults: dict[str, Value] = {}
    if kind == "source" and any(mark in named for mark in (*connector.marks, PROFILE)):
        defaults |= connector.defaults
    if kind == "sink":
        defaults |= connector.sink_defaults
    if is_of_it:
        defaults |= default_options(connector, kind, texts, types)
    origin = options[0].path[0] if options else Text("", 0, 0)
    translated += [
        Option(
            [origin._replace(value=part) for part in name.split(".")],
            value_node(file, value, origin),
        )
        for name, value in defaults.items()
        if name not in names
    ]
    return translated


def is_arroyo_table(options: Sequence[Option], kind: Kind) -> bool:
    """Returns whether a table has a connector or an option that only Arroyo has."""
    texts = {option.name: text_of(option) for option in options}
    name = texts.get("connector", "")
    return name in MISSING or is_of_arroyo(name, find_connector(name, texts), kind, texts)


def metadata_name(name: Text, options: Sequence[Option]) -> Text:
    """Returns the name of metadata in Penstock."""
    is_kafka = any(
        option.name == "connector" and text_of(option) in ("kafka", "confluent")
        for option in options
    )
    return name._replace(value="offset") if is_kafka and name.value == "offset_id" else name


def _connector(file: File, options: Mapping[str, Option], kind: Kind) -> Connector:
    """Returns the rules of a connector; none for a connector that Arroyo does not have."""
    option = options.get("connector")
    if option is None or not isinstance(option.value, ScalarNode):
        return Connector("")
    name = str(option.value.value)
    if name in MISSING:
        raise SpecError(
            f'the connector "{name}" of Arroyo has no counterpart',
            code="unknown-type", where=option.value.location, hint=MISSING[name],
        )  # fmt: skip
    return find_connector(name, options)


def _check_required(options: Mapping[str, Option], connector: Connector, kind: Kind) -> None:
    """Raises SpecError at a table without an option that it needs, in either spelling."""
    if {PROFILE, "connection"} & options.keys():
        return
    rules = connector.rules(kind)
    for name in connector.required:
        rule = rules.get(name)
        other = ".".join(rule.parts) if isinstance(rule, Key) else name
        if not any(each in (name, other) or each.startswith(f"{other}.") for each in options):
            raise SpecError(
                f'the table needs the option "{name}"',
                code="missing-option",
                where=options["connector"].value.location,
                hint=f"add '{name}' = '...'",
            )


def _check_registry(file: File, options: Mapping[str, Option], connector: Connector) -> None:
    """Raises SpecError at a format that needs a schema registry if there is none."""
    flag = next((options[name] for name in REGISTERED if name in options), None)
    if flag is None or connector.type != "kafka":
        return
    has_url = any(name.endswith(("registry.endpoint", "registry.url")) for name in options)
    if is_true(text_of(flag)) and not has_url:
        raise SpecError(
            f'the option "{flag.name}" needs the option "schema_registry.endpoint"',
            code="missing-option", where=file.location(flag.path[0].start, flag.path[-1].end),
            hint="add 'schema_registry.endpoint' = 'http://host:8081'",
        )  # fmt: skip


def _translate_all(
    file: File, options: Sequence[Option], rules: dict[str, Rule], connector: Connector
) -> Iterator[Option]:
    messages = [option for option in options if _MESSAGES.match(option.name)]
    messages.sort(key=lambda each: int(each.name.rpartition(".")[2]))
    name = format_name(connector, {option.name: text_of(option) for option in options})
    # The format comes first: options of the format are added to it.
    for option in sorted(options, key=lambda each: each.name != "format"):
        if option.name == "connector" and connector.type:
            yield _with_type(option, connector.type)
        elif option.name == "format" and name is not None:
            yield replace(option, value=with_value(option.value, name))
        elif option in messages:
            if option is messages[0]:
                items = list_node(file, [each.value for each in messages])
                yield Option([option.path[0]._replace(value="messages")], items)
        elif option.name in rules:
            yield from _translate(file, option, rules[option.name])
        else:
            _check_name(file, option, rules)
            yield _with_similar(option, rules)


def _with_type(option: Option, type_: str) -> Option:
    """Returns the option `connector` with a type, and the nearest connector of Arroyo."""
    value, close = with_value(option.value, type_), nearest(type_, CONNECTORS)
    if isinstance(value, ScalarNode) and close is not None:
        value = replace(value, similar=(close,))
    return replace(option, value=value)


def _check_name(file: File, option: Option, rules: dict[str, Rule]) -> None:
    """Raises SpecError at an unknown option in a group that only Arroyo has, as `source.`."""
    known = [name for name in rules if name.startswith(_GROUPS)]
    if option.name.startswith(_GROUPS) and known:
        raise SpecError(
            f'unknown option "{option.name}"',
            code="unknown-option",
            where=file.location(option.path[0].start, option.path[-1].end),
            hint=did_you_mean_one_of(_similar(option.name, {name: rules[name] for name in known}))
            or did_you_mean(option.name, known),
        )


def _with_similar(option: Option, rules: dict[str, Rule]) -> Option:
    """Returns an option with the nearest name of Arroyo, for the error if it is unknown."""
    if not isinstance(option.value, ScalarNode):
        return option
    return replace(option, value=replace(option.value, similar=_similar(option.name, rules)))


def _similar(name: str, rules: Mapping[str, Rule]) -> tuple[str, ...]:
    """Returns the nearest option of Arroyo, and its name in Penstock."""
    close = nearest(name, rules)
    if close is None:
        return ()
    rule = rules[close]
    target = ".".join(rule.parts) if isinstance(rule, Key) else ""
    return tuple(dict.fromkeys(filter(None, (close, target))))


def _translate(file: File, option: Option, rule: Rule) -> Iterator[Option]:
    """Yields the option of Penstock; none for an option without effect."""
    where = file.location(option.path[0].start, option.path[-1].end)
    if isinstance(rule, Unsupported):
        raise _unsupported(f'the option "{option.name}"', rule, where)
    value: Node = option.value
    if rule.values:
        text = rule.spelled(text_of(option))
        if text not in rule.values:
            raise SpecError(
                f'expected a value of "{option.name}", found "{text}"',
                code="invalid-option",
                where=value.location,
                hint=did_you_mean(text, rule.values),
            )
        new = rule.values[text]
        if isinstance(new, Unsupported):
            raise _unsupported(f'the value "{text}" of "{option.name}"', new, value.location)
        if new == "":
            return
        value = with_value(value, new)
    elif rule.convert is not None:
        origin = option.path[0]
        if isinstance(value, ScalarNode):
            value = located(file, rule.convert(written_text(option)), value, origin)
    if rule.parts:
        yield _option(option, rule.parts, value)
    for name, implied in rule.also.items():
        yield _option(option, name.split("."), value_node(file, implied, option.path[0]))


def _option(option: Option, parts: Sequence[str], value: Node) -> Option:
    """Returns an option of Penstock at the place of one of Arroyo."""
    first, last = option.path[0], option.path[-1]
    return Option([Text(part, first.start, last.end) for part in parts], value)


def _unsupported(subject: str, unsupported: Unsupported, where: Location) -> SpecError:
    reason = f": {unsupported.reason}" if unsupported.reason else ""
    return SpecError(
        f"{subject} of Arroyo has no counterpart{reason}",
        code="unsupported-option", where=where, hint=unsupported.hint,
    )  # fmt: skip
