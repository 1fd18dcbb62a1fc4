"""Spark's functions that keep state, depend on chance or read the clock.

`.venv/bin/python tests/integration/function_registry.py` writes `penstock/sql/functions.py`, and
the usages of all functions, `penstock/language/function_usages.json`.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.engine.catalyst.java_names import java_names

PACKAGE = Path(__file__).parents[2] / "src/penstock"
TARGET = PACKAGE / "sql/functions.py"
USAGES = PACKAGE / "language/function_usages.json"
CLOCKS = ("CurrentTimestamp", "CurrentDate", "CurrentTime", "LocalTimestamp", "Now")
"""The expressions of Spark that read the clock."""
_CATALYST = "org.apache.spark.sql.catalyst.expressions"
_RANDOM = (f"{_CATALYST}.Nondeterministic", f"{_CATALYST}.ExpressionWithRandomSeed")
_AGGREGATE = f"{_CATALYST}.aggregate.AggregateFunction"
_EXAMPLE = re.compile(r"^\s*>\s*(SELECT.*?);\s*$", re.MULTILINE | re.DOTALL)
_USAGE = re.compile(
    r"^[ \t]*(\S[^\n]*?) +- +(.*?)(?=\n\s*\n|\n[ \t]*\S+\([^\n]*\) +- )",
    re.MULTILINE | re.DOTALL,
)
"""A form of a function and its documentation."""
_TAG = re.compile(r"</?[a-z][^>]*>")
_HEADER = '''\
"""Functions of Spark SQL, and those with state, chance or the current time, from its registry.

Written by `tests/integration/function_registry.py`; do not edit.
"""

from __future__ import annotations
'''
_DOCSTRINGS = {
    "AGGREGATES": "Functions over several rows.",
    "NONDETERMINISTIC": "Functions whose results differ between two evaluations of the same rows.",
    "CLOCKS": "Functions that read the current time.",
    "CLOCKS_WITHOUT_ARGUMENTS": "Functions that read the current time if called with no argument.",
    "CLOCKS_WITHOUT_PARENTHESES": "Functions that read the current time, also as a bare word.",
    "BUILTINS": "All functions, also those that return relations.",
}


class Registry:
    """The functions of a session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._plans: dict[str, Any | None] = {}
        self._jvm: Any = java_names(session)
        java_session: Any = session._jsparkSession
        registry = java_session.sessionState().functionRegistry()
        names = {name.funcName(): name for name in items(registry.listFunction())}
        tables = java_session.sessionState().tableFunctionRegistry().listFunction()
        self.names = {*names, *(name.funcName() for name in items(tables))}
        self.infos = {name: registry.lookupFunction(names[name]).get() for name in sorted(names)}

    def examples(self, name: str) -> list[str]:
        """Returns the queries in the documentation of a function."""
        text = self.infos[name].getExamples().replace("_FUNC_", name)
        return [match[1] for match in _EXAMPLE.finditer(text)]

    def analyze(self, query: str) -> Any | None:
        """Returns the analyzed plan of a query, or None for a query with an error."""
        if query not in self._plans:
            self._plans[query] = self._analyze(query)
        return self._plans[query]

    def _analyze(self, query: str) -> Any | None:
        try:
            frame: Any = self.session.sql(query)
            return frame._jdf.queryExecution().analyzed()
        except (PySparkException, Py4JJavaError):
            return None

    def is_a(self, name: str, *classes: str) -> bool:
        """Returns whether a function's expression has one of the classes."""
        utils = self._jvm.org.apache.spark.util.Utils
        found = utils.classForName(self.infos[name].getClassName(), False, True)
        return any(utils.classForName(c, False, True).isAssignableFrom(found) for c in classes)

    def reads_clock(self, query: str) -> bool:
        """Returns whether the plan of a query reads the clock."""
        plan = self.analyze(query)
        patterns = self._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        if plan is None or not plan.containsPattern(patterns.CURRENT_LIKE()):
            return False
        return any(e.getClass().getSimpleName() in CLOCKS for e in plan_expressions(plan))

    def is_random(self, query: str) -> bool:
        """Returns whether Spark regards a query as nondeterministic."""
        plan = self.analyze(query)
        return plan is not None and not plan.deterministic()

    def sets(self) -> dict[str, set[str]]:
        """Returns the constants of `penstock.sql.functions`."""
        sets: dict[str, set[str]] = {name: set() for name in _DOCSTRINGS}
        sets["BUILTINS"] = {name for name in self.names if name.isidentifier()}
        for name, info in self.infos.items():
            examples = self.examples(name)
            if info.getGroup() == "agg_funcs" or self.is_a(name, _AGGREGATE):
                sets["AGGREGATES"].add(name)
            if self.is_a(name, *_RANDOM) or any(map(self.is_random, examples)):
                sets["NONDETERMINISTIC"].add(name)
            if any(self.reads_clock(e) for e in examples if f"{name}()" not in e):
                sets["CLOCKS"].add(name)
            documented = any(f"{name}()" in example for example in examples)
            if documented and self.reads_clock(f"SELECT {name}()"):
                sets["CLOCKS_WITHOUT_ARGUMENTS"].add(name)
                if self.reads_clock(f"SELECT {name}"):
                    sets["CLOCKS_WITHOUT_PARENTHESES"].add(name)
        return sets

    def usages(self) -> dict[str, list[list[str]]]:
        """Returns the forms of each function, each with the sentences of its documentation."""
        return {
            name: [[match[1].strip(), _plain(match[2])] for match in _USAGE.finditer(usage)]
            for name, info in self.infos.items()
            if name.isidentifier()
            for usage in [info.getUsage().replace("_FUNC_", name).strip() + "\n\n"]
        }


def _plain(text: str) -> str:
    """Returns a text of the registry without line breaks and HTML."""
    return " ".join(_TAG.sub("", text).split())


def items(sequence: Any) -> Iterator[Any]:
    """Yields the items of a Scala collection."""
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def plan_expressions(plan: Any) -> Iterator[Any]:
    """Yields all expressions of a logical plan."""
    pending = list(items(plan.expressions()))
    while pending:
        expression = pending.pop()
        yield expression
        pending += items(expression.children())
    for child in items(plan.children()):
        yield from plan_expressions(child)


def module_text(sets: dict[str, set[str]]) -> str:
    """Returns the text of `penstock.sql.functions`."""
    constants = (_constant(name, sets[name], text) for name, text in _DOCSTRINGS.items())
    return "\n".join([_HEADER, *constants])


def _constant(name: str, words: Iterable[str], docstring: str) -> str:
    lines = textwrap.wrap(" ".join(f'"{word}",' for word in sorted(words)), 92)
    body = "".join(f"        {line}\n" for line in lines)
    return f'{name} = frozenset(\n    [\n{body}    ]\n)  # fmt: skip\n"""{docstring}"""\n'


def main() -> None:
    from penstock.engine.spark_session.session import session
    from penstock.engine.spark_session.settings import SessionSettings

    with session(SessionSettings(master="local[1]")) as spark:
        registry = Registry(spark)
        TARGET.write_text(module_text(registry.sets()))
        USAGES.write_text(json.dumps(registry.usages(), indent=0) + "\n")


if __name__ == "__main__":
    main()
