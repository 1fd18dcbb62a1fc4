"""The fields of the model that a path of pydantic's leads to."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr

from penstock.spec.nodes import Route


@dataclass(frozen=True)
class Field:
    """A field as the user knows it."""

    annotation: Any
    description: str | None
    required: bool = False

    @property
    def secret(self) -> bool:
        """Whether its value is never shown."""
        kinds = [each for each in _alternatives(self.annotation) if isinstance(each, type)]
        return any(issubclass(kind, SecretStr) for kind in kinds)

    @property
    def sentence(self) -> str | None:
        """The first sentence of its documentation, without the full stop."""
        if not self.description:
            return None
        first = " ".join(self.description.split()).split(". ")[0]
        return first if first.endswith("...") else first.removesuffix(".")


def fields_at(model: type[BaseModel], trail: Route) -> dict[str, Field]:
    """The fields by the names users write, of all models that `trail` may lead to.

    Steps of a trail that are no field are the names that pydantic gives to a union's branches.
    """
    kinds = [*_alternatives(model)]
    for step in trail:
        below = [each for kind in kinds for each in _below(kind, step)]
        kinds = below or kinds
    found: dict[str, Field] = {}
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found |= _fields(kind)
    return found


def _fields(model: type[BaseModel]) -> dict[str, Field]:
    return {
        info.alias or name: Field(info.annotation, info.description, info.is_required())
        for name, info in model.model_fields.items()
    }


def _below(kind: Any, step: str | int) -> Iterator[Any]:
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
        for each in get_args(annotation):
            yield from _alternatives(each)
    else:
        yield annotation
