"""Answers of DataFusion and Spark to the same queries, with the names of their columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

FOLDER = Path(__file__).parent / "datafusion"
ANSWERS = FOLDER / "queries.jsonl"


@dataclass(frozen=True)
class QueryAnswers:
    """The answers to a query as text: columns and rows, or the error."""

    rule: str
    query: str
    datafusion: str
    spark: str
    dialect: str
    """The answer in scripts of dialects that are built on DataFusion."""


def read_tables() -> Mapping[str, str]:
    """Returns the queries of the tables by name."""
    tables: Mapping[str, str] = _content()["tables"]
    return tables


def read_queries() -> Mapping[str, str]:
    """Returns the queries by the rule that they show."""
    queries: Mapping[str, str] = _content()["queries"]
    return queries


def read_query_answers() -> list[QueryAnswers]:
    """Returns the stored answers."""
    lines = ANSWERS.read_text(encoding="utf-8").splitlines()
    return [QueryAnswers(**json.loads(line)) for line in lines]


def _content() -> Any:
    return YAML(typ="safe").load(FOLDER / "queries.yaml")
