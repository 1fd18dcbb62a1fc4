"""The page of the functions of SQL, from the stored answers to samples."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tables import table

SAMPLES = Path(__file__).parents[1] / "tests" / "golden"
HEAD = """# Functions of SQL

Scripts and SQL transforms have the functions of Spark, and those of DataFusion that scripts of
other systems use. This page lists all functions of DataFusion and of its extension for JSON. Each
row is a sample expression, the answer of Penstock, and the answer of DataFusion {version} where it
differs. {count}

A function that both systems have means what it means in Spark, except in scripts of Arroyo.
Answers are compared by value: `2` is equal to `2.0`. Times have microseconds, and the time zone is
UTC. A function without a counterpart is an error of `penstock check` that names the expression to
use instead.

Windows of event time (`tumble`, `hop`, `session`, `calendar_window`) are in
[Write a pipeline as a SQL script](../howto/sql.md).

"""
ROWS = """The samples are computed on these rows:

"""


def import_samples() -> None:
    """Makes the modules of the samples importable."""
    if str(SAMPLES) not in sys.path:
        sys.path.insert(0, str(SAMPLES))


def functions() -> str:
    """Returns the page of the functions of SQL."""
    import_samples()
    samples = import_module("function_samples")
    count: Counter[str] = Counter()
    page = ""
    for name in samples.FAMILIES:
        family, answers = samples.read_family(name), samples.read_answers(name)
        page += f"## {family.title}\n\n"
        if name == "aggregates":
            page += ROWS + _rows(*samples.read_rows())
        elif name == "windows":
            page += "The answers are a list: one value for each row of the table above.\n\n"
        elif not family.in_datafusion:
            page += "The package `datafusion` has no functions of JSON to compare with.\n\n"
        page += table(_header(family), list(_lines(family, answers, count)))
    return (
        HEAD.format(version=version("datafusion").partition(".")[0], count=_summary(count)) + page
    )


def _header(family: Any) -> tuple[str, ...]:
    header = ("function", "sample", "Penstock")
    return (*header, "DataFusion, if it differs") if family.in_datafusion else header


def _lines(
    family: Any, answers: Mapping[str, Any], count: Counter[str]
) -> Iterator[tuple[str, ...]]:
    """Yields the rows of a family. Aliases with the same answers are one row."""
    for sample in family.samples:
        groups: dict[object, list[tuple[str, str]]] = {}
        for name, text in sample.texts.items():
            groups.setdefault(answers[text], []).append((name, text))
        for answer, members in groups.items():
            called = [each for name, _ in members for each in name.split(", ")]
            names = ", ".join(f"`{each}`" for each in called)
            line = (names, f"`{members[0][1]}`", _penstock(answer))
            comparison = _comparison(family, answer)
            count[comparison] += len(members)
            other = ""
            if family.in_datafusion and answer.arroyo is not None:
                count["in scripts of Arroyo"] += len(members)
                other = (
                    f"{_code(answer.datafusion)}, as in scripts of Arroyo. {sample.reason or ''}"
                )
            elif comparison in ("different", "errors") and family.in_datafusion:
                other = f"{_code(answer.datafusion)}. {sample.reason or ''}"
            yield (*line, other) if family.in_datafusion else line


def _comparison(family: Any, answer: Any) -> str:
    if answer.error:
        return "errors"
    if not family.in_datafusion:
        return "only in Penstock"
    return "equal" if answer.penstock == answer.datafusion else "different"


def _rows(columns: list[str], rows: list[str]) -> str:
    return table(columns, [row.split(", ") for row in rows])


def _penstock(answer: Any) -> str:
    return f"error: {answer.error}" if answer.error else _code(answer.penstock)


def _code(answer: str | None) -> str:
    """Returns an answer as code."""
    if answer is None:
        return "no answer"
    return f"`{answer}`" if answer.strip() else "empty text"


def _summary(count: Counter[str]) -> str:
    in_scripts = count.pop("in scripts of Arroyo")
    return (
        f"Of {count.total()} samples {count['equal']} have the same answer, "
        f"{count['different']} have another one, {count['errors']} are errors of Penstock, and "
        f"{count['only in Penstock']} are compared with nothing. In [scripts of "
        f"Arroyo](../howto/arroyo.md) {in_scripts} of the others have DataFusion's "
        "answer too."
    )
