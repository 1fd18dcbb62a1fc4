"""The models of a component's `Config`, and their fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from pydantic.fields import FieldInfo

from penstock.sdk import Config


class ConfigField(NamedTuple):
    """A field of a model."""

    model: type[Config]
    name: str
    info: FieldInfo

    def __str__(self) -> str:
        return f"{self.model.__name__}.{self.name}"


def config_fields(model: type[Config]) -> Iterator[ConfigField]:
    """Yields the fields of a model and of all nested models."""
    for nested in _nested_models(model, set()):
        for name, info in nested.model_fields.items():
            yield ConfigField(nested, name, info)


def annotated_classes(annotation: Any) -> set[Any]:
    """Returns all classes in a type annotation."""
    classes = {annotation} if isinstance(annotation, type) else set()
    for argument in get_args(annotation):
        classes |= annotated_classes(argument)
    return classes


def merge_options(options: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Returns options with changes, merged also in nested maps."""
    nested = {
        name: merge_options(options[name], value)
        for name, value in changes.items()
        if isinstance(value, dict) and isinstance(options.get(name), dict)
    }
    return {**options, **changes, **nested}


def _nested_models(model: type[Config], seen: set[type]) -> Iterator[type[Config]]:
    if model in seen:
        return
    seen.add(model)
    yield model
    for field in model.model_fields.values():
        for cls in annotated_classes(field.annotation):
            if isinstance(cls, type) and issubclass(cls, Config):
                yield from _nested_models(cls, seen)
