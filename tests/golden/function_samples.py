"""Samples of the functions of SQL, and their stored answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

FOLDER = Path(__file__).parent / "functions"
FAMILIES = (
    "mathematics", "conditions", "operators", "strings", "regular_expressions", "binary", "times",
    "arrays", "structs_and_maps", "types", "json", "aggregates", "windows",
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """An expression that calls a function, and the same with its aliases."""

    texts: Mapping[str, str]
    """The expression by the name of the function, or the names of the operators."""
    reason: str | None = None
    """The reason for another answer of DataFusion."""


@dataclass(frozen=True)
class Family:
    """The samples of related functions."""

    name: str
    title: str
    samples: tuple[Sample, ...]
    functions: tuple[str, ...]
    in_datafusion: bool

    @property
    def texts(self) -> list[str]:
        """All expressions."""
        return [text for sample in self.samples for text in sample.texts.values()]


@dataclass(frozen=True)
class Answers:
    """The answers to a sample, as text. An answer is None if the system does not accept it."""

    penstock: str | None
    datafusion: str | None
    error: str | None = None
    """The message and hint of Penstock instead of an answer."""
    arroyo: str | None = None
    """The answer in scripts of Arroyo, if it is another one than that of Penstock."""


def read_family(name: str) -> Family:
    """Returns the samples of a file."""
    content = YAML(typ="safe").load(FOLDER / f"{name}.yaml")
    samples, functions = [], []
    for names, given in content["functions"].items():
        functions += names.split(", ")
        for item in given if isinstance(given, list) else [given]:
            text, reason = next(iter(item.items())) if isinstance(item, dict) else (item, None)
            samples.append(Sample(_aliases(names.split(", "), str(text)), reason))
    in_datafusion = content.get("datafusion", True)
    return Family(name, content["title"], tuple(samples), tuple(functions), in_datafusion)


def _aliases(names: list[str], text: str) -> dict[str, str]:
    """Returns the expression by name; under all names if it calls none of them."""
    first = re.compile(rf"\b{re.escape(names[0])}\(")
    if not first.search(text):
        return {", ".join(names): text}
    return {name: first.sub(f"{name}(", text) for name in names}


def read_rows() -> tuple[list[str], list[str]]:
    """Returns the columns and the values of the sample rows as SQL."""
    content = YAML(typ="safe").load(FOLDER / "rows.yaml")
    return content["columns"], content["rows"]


def answers_file(family: str) -> Path:
    """Returns the file of the stored answers of a family."""
    return FOLDER / f"{family}.jsonl"


def read_answers(family: str) -> dict[str, Answers]:
    """Returns the stored answers by sample."""
    lines = answers_file(family).read_text(encoding="utf-8").splitlines()
    return {
        line.pop("sample"): Answers(**{"penstock": None, "datafusion": None, **line})
        for line in map(json.loads, lines)
    }


def written(answers: Mapping[str, Answers]) -> str:
    """Returns the content of a file of answers: a line of JSON for each sample."""
    lines = []
    for text, answer in answers.items():
        parts = {key: value for key, value in vars(answer).items() if value is not None}
        lines.append(json.dumps({"sample": text, **parts}, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)
