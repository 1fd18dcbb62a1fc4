"""One name per idea: the options of all components follow the table in docs/howto/connector.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel, SecretStr, TypeAdapter, ValidationError

from penstock.core.retry import Retry
from penstock.sdk import StartAt, registry
from penstock.sdk.columns.template import KeyTemplate, Template
from penstock.sdk.network.auth import Auth
from penstock.sdk.network.tls import Tls
from penstock.sdk.registry import KINDS, Kind
from penstock.spec.node_models import BatchOptions
from penstock.spec.runtime_models import DeadLetterLimits, Restart

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "connector.md"
COMPONENTS = [(kind, type_) for kind in KINDS for type_ in registry.types(kind)]
REPLACED = {
    "bind": "listen or connect", "endpoint": "endpoint_url", "address": "url",
    "patience": "write_timeout", "silence": "idle_timeout", "pause": "reconnect_delay",
    "longest": "max_backoff", "settle": "min_age", "after": "after_read",
    "max_body": "max_message_size", "max_message": "max_message_size",
    "max_packet_size": "max_message_size", "max_datagram": "max_datagram_size",
    "max_rows": "max_records", "max_messages": "max_records", "in_flight": "max_in_flight",
    "prefetch": "max_in_flight", "connections": "concurrency", "writers": "concurrency",
    "heartbeat": "keep_alive", "ping": "keep_alive", "expiration": "ttl",
    "message_expiry": "ttl", "session_expiry": "session_ttl", "declare": "create",
    "attributes": "headers", "queue_group": "group", "partition_key": "key",
    "event_time": "event_time_column", "subscribers": "min_subscribers",
}  # fmt: skip
"""Names that are not used, with the name of the idea."""
OTHER_MEANINGS = {
    ("rabbitmq", "bind"), ("modbus", "points.address"),
}  # fmt: skip
"""Options of the system whose names mean another idea: bindings of a queue, register addresses."""
CREDENTIALS = {"username", "password", "token", "access_key", "secret_key", "jwt", "nkey"}


def models(
    model: type[BaseModel], path: str = "", above: tuple[type, ...] = ()
) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yields the model of a component and all models of its options, each with its path."""
    yield path, model
    for name, hint in get_type_hints(model, include_extras=True).items():
        if name in model.model_fields:
            for part in classes(hint):
                if issubclass(part, BaseModel) and part not in (*above, model):
                    yield from models(part, f"{path}{name}.", (*above, model))


def classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and not get_args(hint):
        yield hint
    for argument in get_args(hint):
        yield from classes(argument)


def options(kind: Kind, type_: str) -> Iterator[tuple[str, str, Any]]:
    """Path, name and type of each option of a component."""
    for path, model in models(registry.find(kind, type_).config_type):
        hints = get_type_hints(model, include_extras=True)
        for name, field in model.model_fields.items():
            yield path, field.alias or name, hints[name]


@pytest.mark.parametrize(("kind", "type_"), COMPONENTS)
def test_an_idea_has_one_name(kind: Kind, type_: str) -> None:
    for path, name, _ in options(kind, type_):
        if (type_, f"{path}{name}") in OTHER_MEANINGS or path.startswith("fields."):
            continue
        assert name not in REPLACED, f"{path}{name}: use {REPLACED[name]}"


@pytest.mark.parametrize(("kind", "type_"), COMPONENTS)
def test_credentials_are_in_auth(kind: Kind, type_: str) -> None:
    config = registry.find(kind, type_).config_type
    for path, name, hint in options(kind, type_):
        if name == "auth":
            assert any(issubclass(part, Auth) for part in classes(hint)), f"{path}auth"
        if name in CREDENTIALS:
            assert re.search(r"(^|\.)auth\.$", path), f"{config.__name__}: {path}{name}"


@pytest.mark.parametrize(("kind", "type_"), COMPONENTS)
def test_shared_ideas_have_shared_types(kind: Kind, type_: str) -> None:
    for path, name, hint in options(kind, type_):
        parts = [part for part in classes(hint) if issubclass(part, BaseModel)]
        if name == "tls":
            assert parts == [Tls] and {bool, type(None)} <= {*classes(hint)}, f"{path}tls"
        if name == "start" and kind == "source" and not path:
            assert any(issubclass(part, StartAt) for part in parts), "start"
        if name == "retry":
            assert any(issubclass(part, Retry) for part in parts), f"{path}retry"
        if name == "key" and any(issubclass(part, Template) for part in classes(hint)):
            assert any(issubclass(part, KeyTemplate) for part in classes(hint)), f"{path}key"
        if name in ("on_data_loss", "on_missing", "on_changed"):
            # The rows of a table can also be read again.
            assert {*get_args(hint)} - {"snapshot"} == {"fail", "continue"}, f"{path}{name}"


RUNTIME = [("runtime", model) for model in (Restart, DeadLetterLimits, BatchOptions)]
PERIODS = re.compile(r"(.*_)?timeout|backoff|max_backoff|keep_alive|ttl|retention|flush")


def periods(kind: str, type_: Any) -> Iterator[tuple[str, TypeAdapter[Any]]]:
    """Yields the options that are timeouts or intervals."""
    found: Iterator[tuple[str, type[BaseModel]]] = (
        iter([("", type_)])
        if kind == "runtime"
        else models(registry.find(cast(Kind, kind), type_).config_type)
    )
    for path, model in found:
        for name, field in model.model_fields.items():
            if PERIODS.fullmatch(name) and (type_, name) not in ZERO_IS_VALID:
                hint: Any = field.annotation
                marked: Any = Annotated[hint, *field.metadata] if field.metadata else hint
                yield f"{path}{name}", TypeAdapter(marked)


ZERO_IS_VALID = {("rabbitmq", "ttl"), ("dynamic_table", "ttl")}
"""RabbitMQ delivers a message with this option to a waiting consumer, or drops it. Values of a
dynamic table are looked up for each batch."""
TOO_SHORT = r"expected a duration of at least 1ms|greater than or equal to (1|0\.001)\b"


@pytest.mark.parametrize(("kind", "type_"), [*COMPONENTS, *RUNTIME])
@pytest.mark.parametrize("value", ["0s", "0ms", "100us"])
def test_timeouts_are_at_least_a_millisecond(kind: str, type_: Any, value: str) -> None:
    for path, adapter in periods(kind, type_):
        with pytest.raises(ValidationError, match=TOO_SHORT):
            adapter.validate_python(value)
            pytest.fail(f"{path} accepts {value}")


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text()
    for name in {*REPLACED.values()} - {"listen or connect"}:
        assert f"`{name}" in text, name


def test_secrets_are_found(kind: Kind = "source") -> None:
    hints = [hint for _, name, hint in options(kind, "kafka") if name == "password"]
    assert hints and all(any(issubclass(c, SecretStr) for c in classes(hint)) for hint in hints)


def test_null_without_quotes_is_the_value_null() -> None:
    """YAML reads `null` as no value."""
    found = []
    for kind, type_ in COMPONENTS:
        for path, model in models(registry.find(cast(Kind, kind), type_).config_type):
            for name, hint in get_type_hints(model, include_extras=True).items():
                if name in model.model_fields and "null" in literals(hint):
                    assert TypeAdapter(hint).validate_python(None) == "null", (
                        f"{type_} {path}{name}"
                    )
                    assert None in TypeAdapter(hint).json_schema()["enum"], f"{type_} {path}{name}"
                    found.append(name)
    assert {"missing", "missing_columns", "not_finite", "scope", "unavailable"} == set(found)


def literals(hint: Any) -> list[Any]:
    """Returns the values of a Literal, which may have annotations."""
    if get_origin(hint) is Annotated:
        return literals(get_args(hint)[0])
    return [*get_args(hint)] if get_origin(hint) is Literal else []
