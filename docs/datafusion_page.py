"""The page of the SQL of DataFusion: its differences from Spark, from the stored answers."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any

from functions import import_samples
from tables import table

HEAD = """# The SQL of DataFusion

Scripts of Arroyo have the SQL of [Apache DataFusion](https://datafusion.apache.org). Where the
same text has another meaning in Spark, such a script has the meaning of DataFusion. The tables
compare both on the same samples; the answers are those of DataFusion {version} and of Spark.
`{test}` computes them again, and compares generated expressions too.

"""
REST = """[Functions of SQL](sql-functions.md) has the answers of all functions.
`array_length`, `cardinality` and `array_position` are BIGINT. They are unsigned in DataFusion,
where their quotient with a signed number is a DECIMAL: `array_length(xs) / 2` of three elements is
1 here and 1.5 there."""
TEST = "tests/golden/test_query_answers.py"


def datafusion() -> str:
    """Returns the page."""
    import_samples()
    queries, samples = import_module("query_answers"), import_module("function_samples")
    page = HEAD.format(version=version("datafusion").partition(".")[0], test=TEST)
    page += "## Tables\n\nThe queries below read these tables:\n\n"
    page += table(
        ("table", "query"),
        [(f"`{name}`", _code(text)) for name, text in queries.read_tables().items()],
    )
    page += "## Queries\n\nAn answer is the names of the columns, and the rows.\n\n"
    page += table(
        ("rule", "query", "DataFusion, and scripts of Arroyo", "other scripts"),
        [
            (each.rule, _code(each.query), _code(each.datafusion),
             "the same" if each.spark == each.datafusion else _code(each.spark))
            for each in queries.read_query_answers()
        ],
    )  # fmt: skip
    page += "## Functions and operators with another meaning\n\n"
    page += table(
        ("sample", "DataFusion, and scripts of Arroyo", "other scripts"), [*_special(samples)]
    )
    page += f"## Differences that remain\n\n{REST}\n\n"
    return page + table(("sample", "DataFusion", "Penstock", "reason"), [*_remaining(samples)])


def _answers(samples: Any) -> Iterator[tuple[str, Any, str]]:
    """Yields sample, answers and the reason of a difference, of the families of DataFusion."""
    for name in samples.FAMILIES:
        family, answers = samples.read_family(name), samples.read_answers(name)
        if family.in_datafusion:
            for sample in family.samples:
                for text in sample.texts.values():
                    yield text, answers[text], sample.reason or ""


def _special(samples: Any) -> Iterator[tuple[str, ...]]:
    for text, answer, _ in _answers(samples):
        if answer.arroyo is not None:
            yield _code(text), _code(answer.datafusion), _penstock(answer)


def _remaining(samples: Any) -> Iterator[tuple[str, ...]]:
    for text, answer, reason in _answers(samples):
        if answer.arroyo is None and (answer.error or answer.penstock != answer.datafusion):
            yield _code(text), _code(answer.datafusion), _penstock(answer), reason


def _penstock(answer: Any) -> str:
    return f"error: {answer.error}" if answer.error else _code(answer.penstock)


def _code(text: str | None) -> str:
    return "no answer" if text is None else f"`{' '.join(text.split())}`"
