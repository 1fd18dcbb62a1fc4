"""Fields of models by the error paths of pydantic."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr

from penstock.spec.source_map import Route


@dataclass(frozen=True)
class Field:
    """A field of a model: annotation, documentation, and whether it is required."""

    annotation: Any
    description: str | None
    required: bool = False

    @property
    def secret(self) -> bool:
        """Whether the value is a secret."""
        kinds = [kind for kind in _alternatives(self.annotation) if isinstance(kind, type)]
        return any(issubclass(kind, SecretStr) for kind in kinds)

    @property
    def values(self) -> list[str]:
        """The texts that the field may have, if they are enumerated."""
        return list(dict.fromkeys(_enumerated(self.annotation)))

    @property
    def sentence(self) -> str | None:
        """The first sentence of the documentation, without the full stop."""
        if not self.description:
            return None
        sentence = " ".join(self.description.split()).split(". ")[0]
        return sentence if sentence.endswith("...") else sentence.removesuffix(".")


def fields_at(model: type[BaseModel], trail: Route) -> dict[str, Field]:
    """Returns the fields, by alias, of all models that `trail` may lead to.

    Steps of a trail other than fields are the names of the branches of unions.
    """
    fields: dict[str, Field] = {}
    for kind in models_at(model, trail):
        fields |= _fields(kind)
    return fields


def choices_at(model: type[BaseModel], trail: Route, name: str) -> list[str]:
    """Returns the texts that the field `name` accepts in the models that `trail` may lead to."""
    fields = (_fields(kind).get(name) for kind in models_at(model, trail))
    return [text for field in fields if field for text in _literals(field)]


def models_at(model: type[BaseModel], trail: Route) -> list[type[BaseModel]]:
    """Returns the models that `trail` may lead to."""
    kinds = [*_alternatives(model)]
    for step in trail:
        tagged = _tagged(kinds, step)
        children = [child for kind in kinds for child in _child_types(kind, step)]
        kinds = tagged or children or kinds
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _tagged(kinds: list[Any], step: str | int) -> list[Any]:
    """Returns the model, of several, whose discriminator has the value `step`; or none."""
    models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
    if len(models) < 2:
        return []
    return [
        kind for kind in models if any(step in _literals(field) for field in _fields(kind).values())
    ]


def _literals(field: Field) -> tuple[Any, ...]:
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def _fields(model: type[BaseModel]) -> dict[str, Field]:
    return {
        info.alias or name: Field(info.annotation, info.description, info.is_required())
        for name, info in model.model_fields.items()
    }


def _enumerated(annotation: Any) -> Iterator[str]:
    for kind in _alternatives(annotation):
        if get_origin(kind) is Literal:
            yield from map(str, get_args(kind))
        elif kind is bool:
            yield from ("true", "false")
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield from (str(member.value) for member in kind)
        elif get_origin(kind) in {list, tuple, set, frozenset}:
            yield from _enumerated(get_args(kind)[0])


def _child_types(kind: Any, step: str | int) -> Iterator[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = _fields(kind).get(str(step))
        if field:
            yield from _alternatives(field.annotation)
        return
    origin, args = get_origin(kind), get_args(kind)
    if origin is dict and len(args) == 2:
        yield from _alternatives(args[1])
    elif origin in {list, tuple, set, frozenset} and args and isinstance(step, int):
        yield from _alternatives(args[0])


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin in {Union, types.UnionType}:
        for alternative in get_args(annotation):
            yield from _alternatives(alternative)
    else:
        yield annotation
