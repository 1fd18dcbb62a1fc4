"""Bases and types of the models of a pipeline."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema
from pydantic_core import PydanticCustomError

from penstock.core.paths import UserPath

OnError = Literal["dead_letter", "fail", "drop"]


class StrictModel(BaseModel):
    """Base of all parts of a pipeline: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class NodeModel(StrictModel):
    """Base of nodes: further keys are options of the `type`."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the node's type, as written."""
        return dict(self.__pydantic_extra__ or {})


def _as_list(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise PydanticCustomError("names_type", "expected a name or a list of names")
    return value


NameList = Annotated[
    list[str],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A name, or a list of names."""

_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*\Z")
_LABELS_OF_METRICS = ("pipeline", "node", "kind", "type", "unit", "query", "le")


def _check_labels(labels: dict[str, str]) -> dict[str, str]:
    for name in labels:
        if name in _LABELS_OF_METRICS:
            raise ValueError(f'the label "{name}" is reserved')
        if not _LABEL.match(name):
            raise ValueError(f'"{name}" is not a valid label: expected letters, digits and _')
    return labels


Labels = Annotated[dict[str, str], AfterValidator(_check_labels)]
"""Labels of metrics by name."""

PathList = Annotated[
    list[UserPath],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A path, or a list of paths."""
