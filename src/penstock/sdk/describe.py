"""What a component says of itself: purpose, options, example. For `penstock describe` and docs."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from importlib.metadata import PackageNotFoundError, distribution
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr
from pydantic_core import to_jsonable_python

from penstock.core.paths import UserPath
from penstock.core.units import ByteSize, Duration, duration_text, size_text
from penstock.sdk import registry
from penstock.sdk.capability import Capability
from penstock.sdk.component import Component
from penstock.sdk.kit.columns import sql_name
from penstock.sdk.promise import Promise, promises, variants
from penstock.sdk.registry import Kind
from penstock.sdk.source import Source
from penstock.spec.models import Names, SinkSpec, SourceSpec, TransformSpec

SHARED: Mapping[Kind, type[BaseModel]] = {
    "source": SourceSpec, "transform": TransformSpec, "sink": SinkSpec,
}  # fmt: skip
_WORDS: list[tuple[Any, str]] = [
    (Duration, "duration"), (ByteSize, "size"), (UserPath, "path"),
    (Names, "name or list of names"),
]  # fmt: skip
_PLAIN: dict[Any, str] = {
    str: "text", int: "integer", float: "number", bool: "true or false", Any: "anything",
    datetime: "time",
}  # fmt: skip
_EXAMPLE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Option:
    """One key of a node. `default` is None where there is none; `text` is its documentation."""

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
    """A metadata column that a source offers."""

    name: str
    type: str


@dataclass(frozen=True)
class Description:
    """A component as it is documented. `text` is what follows the summary, without the example."""

    kind: Kind
    type: str
    summary: str
    text: str
    example: str
    options: tuple[Option, ...]
    parts: tuple[Part, ...]
    metadata: tuple[Column, ...]
    capabilities: Mapping[str, str | None]
    """What it can do, each with the option that makes it so; None: always."""
    promises: tuple[Promise, ...]
    """What a source or sink promises, in each of its variants."""
    extra: str | None
    missing: tuple[str, ...]
    """Python packages of `extra` that are not installed."""


def describe(kind: Kind, type_: str) -> Description:
    """The description of a type. Raises PlanError for an unknown one, with the nearest name."""
    component = registry.find(kind, type_)
    summary, text, example = _prose(component)
    return Description(
        kind=kind,
        type=type_,
        summary=summary,
        text=text,
        example=example,
        options=tuple(_options(component.config_type)),
        parts=tuple(_parts(component.config_type, "", set())),
        metadata=tuple(_metadata(component)),
        capabilities=_capabilities(component),
        promises=promises(component),
        extra=component.extra,
        missing=missing(kind, type_, component.extra),
    )


def describe_all() -> dict[Kind, list[Description]]:
    """All that is installed, by kind, each sorted by type."""
    return {kind: [describe(kind, t) for t in registry.types(kind)] for kind in registry.KINDS}


def shared_options(kind: Kind) -> tuple[Option, ...]:
    """The options that every node of a kind has."""
    model = SHARED.get(kind)
    return tuple(_options(model)) if model else ()


def describe_model(model: type[BaseModel]) -> tuple[tuple[Option, ...], tuple[Part, ...]]:
    """The keys of a map, and those of the maps that are its values."""
    return tuple(_options(model)), tuple(_parts(model, "", set()))


def missing(kind: Kind, type_: str, extra: str | None) -> tuple[str, ...]:
    """The Python packages of an extra that are not installed."""
    package = registry.distribution(kind, type_)
    if extra is None or package is None:
        return ()
    wanted = [
        line for line in package.requires or () if re.search(rf"extra == ['\"]{extra}['\"]", line)
    ]
    names = [match[0] for line in wanted if (match := re.match(r"[A-Za-z0-9._-]+", line))]
    return tuple(name for name in names if not _installed(name))


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _prose(component: type[Component[Any]]) -> tuple[str, str, str]:
    text = inspect.cleandoc(component.__doc__ or "")
    example = _EXAMPLE.search(text)
    summary, _, rest = _joined(_EXAMPLE.sub("", text)).partition("\n\n")
    return summary, rest, example[1] if example else ""


def _options(model: type[BaseModel]) -> Iterator[Option]:
    hints = get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        hint = hints[name]
        required = field.is_required()
        default = None if required else field.get_default(call_default_factory=True)
        yield Option(
            name=field.alias or name,
            type=" or ".join(dict.fromkeys(_words(hint))),
            default=_shown(default, hint),
            required=required,
            text=_joined(field.description or ""),
            secret=any(issubclass(each, SecretStr) for each in _classes(hint)),
        )


def _parts(model: type[BaseModel], prefix: str, seen: set[type]) -> Iterator[Part]:
    """The maps below a model's options, each model once."""
    for name, hint in get_type_hints(model, include_extras=True).items():
        if name not in model.model_fields:
            continue
        models = [each for each in _classes(hint) if issubclass(each, BaseModel)]
        news = [each for each in models if each not in seen]
        seen.update(news)
        path = f"{prefix}{model.model_fields[name].alias or name}"
        for each in news:
            label = f"{path} (type: {_tag(each)})" if len(models) > 1 and _tag(each) else path
            text = _joined(inspect.cleandoc(each.__doc__ or ""))
            yield Part(label, text, tuple(_options(each)))
            yield from _parts(each, f"{path}.", seen)


def _tag(model: type[BaseModel]) -> str | None:
    field = model.model_fields.get("type")
    return str(get_args(field.annotation)[0]) if field and get_args(field.annotation) else None


def _capabilities(component: type[Component[Any]]) -> dict[str, str | None]:
    always: dict[Capability, str | None] = dict.fromkeys(component.capabilities)
    return {str(each): option for each, option in sorted({**component.by_option, **always}.items())}


def _metadata(component: type[Component[Any]]) -> Iterator[Column]:
    made = [each for each in variants(component).values() if isinstance(each, Source)]
    fields = {field.name: field for each in made for field in each.metadata()}
    yield from (Column(name, sql_name(field.type)) for name, field in fields.items())


def _words(hint: Any) -> Iterator[str]:
    """The alternatives of a type, in words a user knows."""
    for known, word in _WORDS:
        if hint == known:
            yield word
            return
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        yield _PLAIN[hint]
    elif origin is Annotated:
        yield from _words(arguments[0])
    elif origin in (Union, types.UnionType):
        models = [a for a in arguments if _is_model(a)]
        for each in arguments:
            if each is not type(None) and (not _is_model(each) or each is models[0]):
                yield from _words(each)
    elif origin is Literal:
        yield " | ".join(str(value) for value in arguments)
    elif origin in (list, tuple, Sequence):
        yield f"list of {' or '.join(_words(arguments[0]))}"
    elif origin in (dict, Mapping):
        yield f"map of name to {' or '.join(_words(arguments[1]))}"
    elif inspect.isclass(hint):
        yield _class_words(hint)


def _class_words(hint: type) -> str:
    if issubclass(hint, SecretStr):
        return "secret text"
    if issubclass(hint, str):
        return "text"
    if issubclass(hint, Enum):
        return " | ".join(str(each.value) for each in hint)
    return "map" if issubclass(hint, BaseModel) else hint.__name__


def _is_model(hint: Any) -> bool:
    return inspect.isclass(hint) and issubclass(hint, BaseModel)


def _classes(hint: Any) -> Iterator[type]:
    """All classes that a type mentions."""
    if inspect.isclass(hint) and not get_args(hint):
        yield hint
    for each in get_args(hint):
        yield from _classes(each)


def _shown(default: Any, hint: Any) -> Any:
    """A default as a user would write it."""
    if default is None or isinstance(default, SecretStr):
        return None
    mentioned = [hint, *get_args(hint)]
    if isinstance(default, float) and Duration in mentioned:
        return duration_text(default)
    if isinstance(default, int) and not isinstance(default, bool) and ByteSize in mentioned:
        return size_text(default)
    return to_jsonable_python(default)


def _joined(text: str) -> str:
    """Paragraphs and list items without the line breaks of the source code."""
    return "\n\n".join(
        "\n".join(" ".join(item.split()) for item in re.split(r"\n(?=\* )", paragraph))
        for paragraph in re.split(r"\n\s*\n", text.strip())
    )
