"""Descriptions of components: purpose, options, example. For `penstock describe` and docs."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr
from pydantic_core import to_jsonable_python

from penstock.core.paths import UserFile, UserPath
from penstock.core.units import ByteSize, Duration, PositiveDuration, duration_text, size_text
from penstock.sdk import registry
from penstock.sdk.capability import Capability
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.component import Component
from penstock.sdk.guarantees import DeliveryGuarantee, guarantees, variants
from penstock.sdk.registry import Kind
from penstock.sdk.source import Source
from penstock.spec.model_types import NameList
from penstock.spec.node_models import SideOutputSpec, SinkSpec, SourceSpec, TransformSpec

SHARED: Mapping[Kind, type[BaseModel]] = {
    "source": SourceSpec, "transform": TransformSpec, "sink": SinkSpec,
    "side_output": SideOutputSpec,
}  # fmt: skip
_ALIAS_NAMES: list[tuple[Any, str]] = [
    (Duration, "duration"), (PositiveDuration, "duration"), (ByteSize, "size"), (UserPath, "path"),
    (UserFile, "path"), (NameList, "name or list of names"),
]  # fmt: skip
_TYPE_NAMES: dict[Any, str] = {
    str: "text", int: "integer", float: "number", bool: "true or false", Any: "anything",
    datetime: "time",
}  # fmt: skip
_EXAMPLE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Option:
    """One key of a node. `default` is None without a default; `text` is its documentation."""

    name: str
    type: str
    default: Any
    required: bool
    text: str
    secret: bool = False


@dataclass(frozen=True)
class Part:
    """The keys of a map that is the value of an option."""

    name: str
    text: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Column:
    """A metadata column of a source."""

    name: str
    type: str


@dataclass(frozen=True)
class Description:
    """The documentation of a component. `text` follows the summary and excludes the example."""

    kind: Kind
    type: str
    summary: str
    text: str
    example: str
    options: tuple[Option, ...]
    parts: tuple[Part, ...]
    metadata: tuple[Column, ...]
    capabilities: Mapping[str, str | None]
    """The capabilities, each with the option that enables it; None: always."""
    guarantees: tuple[DeliveryGuarantee, ...]
    """The delivery guarantees of a source or sink, for each variant."""
    extra: str | None
    missing: tuple[str, ...]
    """Python packages of `extra` that are not installed."""


def describe(kind: Kind, type_: str) -> Description:
    """Describes a type. Raises PlanError for an unknown type, with the nearest name."""
    component = registry.find(kind, type_)
    summary, text, example = _parse_docstring(component)
    return Description(
        kind=kind,
        type=type_,
        summary=summary,
        text=text,
        example=example,
        options=options_of(component.config_type),
        parts=tuple(_parts(component.config_type, "", set())),
        metadata=tuple(_metadata(component)),
        capabilities=_capabilities(component),
        guarantees=guarantees(component),
        extra=component.extra,
        missing=missing(kind, type_, component.extra),
    )


def describe_all() -> dict[Kind, list[Description]]:
    """Describes all installed types that can be used, by kind, sorted by type."""
    return {
        kind: [describe(kind, type_) for type_, _ in registry.importable(kind)]
        for kind in registry.KINDS
    }


def shared_options(kind: Kind) -> tuple[Option, ...]:
    """Returns the options that all nodes of a kind share."""
    model = SHARED.get(kind)
    return options_of(model) if model else ()


def describe_model(model: type[BaseModel]) -> tuple[tuple[Option, ...], tuple[Part, ...]]:
    """Returns the options of a model and the parts of its nested models."""
    return options_of(model), tuple(_parts(model, "", set()))


@cache
def options_of(model: type[BaseModel]) -> tuple[Option, ...]:
    """Returns the options of a model, without those of its nested models."""
    return tuple(_options(model))


def missing(kind: Kind, type_: str, extra: str | None) -> tuple[str, ...]:
    """Returns the Python packages of an extra that are not installed."""
    package = registry.distribution(kind, type_)
    if extra is None or package is None:
        return ()
    requirements = [
        line for line in package.requires or () if re.search(rf"extra == ['\"]{extra}['\"]", line)
    ]
    names = [match[0] for line in requirements if (match := re.match(r"[A-Za-z0-9._-]+", line))]
    return tuple(name for name in names if not _installed(name))


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _parse_docstring(component: type[Component[Any]]) -> tuple[str, str, str]:
    text = inspect.cleandoc(component.__doc__ or "")
    example = _EXAMPLE.search(text)
    summary, _, description = _join_lines(_EXAMPLE.sub("", text)).partition("\n\n")
    return summary, description, example[1] if example else ""


def _options(model: type[BaseModel]) -> Iterator[Option]:
    hints = get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        hint = hints[name]
        required = field.is_required()
        default = None if required else field.get_default(call_default_factory=True)
        yield Option(
            name=field.alias or name,
            type=" or ".join(dict.fromkeys(_type_names(hint))),
            default=_format_default(default, hint),
            required=required,
            text=_join_lines(field.description or ""),
            secret=any(issubclass(class_, SecretStr) for class_ in _classes(hint)),
        )


def _parts(model: type[BaseModel], prefix: str, seen: set[type]) -> Iterator[Part]:
    """Yields the nested models of a model's options, each model once."""
    for name, hint in get_type_hints(model, include_extras=True).items():
        if name not in model.model_fields:
            continue
        nested = [class_ for class_ in _classes(hint) if issubclass(class_, BaseModel)]
        new_models = [class_ for class_ in nested if class_ not in seen]
        seen.update(new_models)
        path = f"{prefix}{model.model_fields[name].alias or name}"
        for new_model in new_models:
            tag = _tag(new_model)
            label = f"{path} (type: {tag})" if len(nested) > 1 and tag else path
            text = _join_lines(inspect.cleandoc(new_model.__doc__ or ""))
            yield Part(label, text, options_of(new_model))
            yield from _parts(new_model, f"{path}.", seen)


def _tag(model: type[BaseModel]) -> str | None:
    field = model.model_fields.get("type")
    return str(get_args(field.annotation)[0]) if field and get_args(field.annotation) else None


def _capabilities(component: type[Component[Any]]) -> dict[str, str | None]:
    always: dict[Capability, str | None] = dict.fromkeys(component.capabilities)
    return {
        str(capability): option
        for capability, option in sorted({**component.optional_capabilities, **always}.items())
    }


def _metadata(component: type[Component[Any]]) -> Iterator[Column]:
    sources = [variant for variant in variants(component).values() if isinstance(variant, Source)]
    fields = {field.name: field for source in sources for field in source.metadata_schema()}
    yield from (Column(name, sql_name(field.type)) for name, field in fields.items())


def _type_names(hint: Any) -> Iterator[str]:
    """Yields the alternatives of a type as text for users."""
    for alias, name in _ALIAS_NAMES:
        if _is_alias(hint, alias):
            yield name
            return
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _TYPE_NAMES:
        yield _TYPE_NAMES[hint]
    elif origin is Annotated:
        yield from _type_names(arguments[0])
    elif origin in (Union, types.UnionType):
        models = [argument for argument in arguments if _is_model(argument)]
        for argument in arguments:
            if argument is not type(None) and (not _is_model(argument) or argument is models[0]):
                yield from _type_names(argument)
    elif origin is Literal:
        yield " | ".join(str(value) for value in arguments)
    elif origin in (list, tuple, Sequence):
        yield f"list of {' or '.join(_type_names(arguments[0]))}"
    elif origin in (dict, Mapping):
        yield f"map of name to {' or '.join(_type_names(arguments[1]))}"
    elif inspect.isclass(hint):
        yield _class_name(hint)


def _is_alias(hint: Any, alias: Any) -> bool:
    """Returns whether a type is an annotated alias, possibly with further annotations."""
    if hint == alias or get_origin(hint) is not Annotated or get_origin(alias) is not Annotated:
        return bool(hint == alias)
    arguments = get_args(alias)
    return get_args(hint)[: len(arguments)] == arguments


def _class_name(hint: type) -> str:
    if issubclass(hint, SecretStr):
        return "secret text"
    if issubclass(hint, str):
        return "text"
    if issubclass(hint, Enum):
        return " | ".join(str(member.value) for member in hint)
    return "map" if issubclass(hint, BaseModel) else hint.__name__


def _is_model(hint: Any) -> bool:
    return inspect.isclass(hint) and issubclass(hint, BaseModel)


def _classes(hint: Any) -> Iterator[type]:
    """Yields all classes in a type."""
    if inspect.isclass(hint) and not get_args(hint):
        yield hint
    for argument in get_args(hint):
        yield from _classes(argument)


def _format_default(default: Any, hint: Any) -> Any:
    """Returns a default as written in a pipeline file."""
    if default is None or isinstance(default, SecretStr):
        return None
    alternatives = [hint, *get_args(hint)]
    if isinstance(default, float) and any(
        _is_alias(each, alias) for each in alternatives for alias in (Duration, PositiveDuration)
    ):
        return duration_text(default)
    is_integer = isinstance(default, int) and not isinstance(default, bool)
    if is_integer and any(_is_alias(each, ByteSize) for each in alternatives):
        return size_text(default)
    return to_jsonable_python(default)


def _join_lines(text: str) -> str:
    """Joins the lines of paragraphs and list items."""
    return "\n\n".join(
        "\n".join(" ".join(item.split()) for item in re.split(r"\n(?=\* )", paragraph))
        for paragraph in re.split(r"\n\s*\n", text.strip())
    )
