"""Mutants of SQL scripts by tokens: the plan raises errors of the user only, within seconds.

.venv/bin/python tests/fuzz/scripts.py --seed 1 --count 200000
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

from fuzzing import main
from parser import DIRECTORIES, copy_pipelines, problem_of

from penstock import app
from penstock.core.errors import raise_all

GOLDEN = Path(__file__).parents[1] / "golden"
TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*\n|\w+|\s+|->>|->|::|<=|>=|.")
OPENING = {"(": ")", "[": "]", "{": "}"}
PHRASES = [
    "", "(", ")", ",", ";", ".", "*", "[", "]", "'", '"', "`", "()", "[]", "(,)", "1", "-1",
    "NULL", "''", "1e999", "DISTINCT ", "ORDER BY a", "ORDER BY", "GROUP BY 1", "PARTITION BY a",
    " OVER ()", " OVER (PARTITION BY a ORDER BY b)", " WITHIN GROUP (ORDER BY a)",
    " WITHIN GROUP ()", " FILTER (WHERE a > 1)", " FILTER ()", "INTERVAL '1 minute'", "INTERVAL",
    " AS x", " AS", "AS ", "SELECT 1", "(SELECT a FROM t)", " FROM t", " WHERE a", " HAVING a",
    " UNION ALL ", " JOIN t ", " USING (a)", " ON a = b", "CASE WHEN a THEN b END", "CASE", " END",
    "::INT", "::", "->>'a'", "->", " IGNORE NULLS", " IS NULL", " IN (1)", " BETWEEN 1 AND 2",
    " LIKE 'a'", "CAST(a AS INT)", "CAST(a)", "map('a', 1)", "unnest(a)",
    "tumble(INTERVAL '1 minute')", "hop(INTERVAL '1 minute')", "a => 1", "STRUCT<a INT>", "x -> x",
    "{'a': 1}", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "LIMIT 1", "WITH q AS (SELECT 1) ",
    "VALUES (1)", "LATERAL VIEW explode(a) t AS b", "é", "\\", "/*", "--",
]  # fmt: skip


ARGUMENTS = [
    "", "a", "a, b", "a, 1", "a, 'x', b", "*", "DISTINCT a", "DISTINCT", "ORDER BY a",
    "GROUP BY 1", "a ORDER BY", "a ORDER BY b DESC, a", "a, ORDER BY b", "DISTINCT a ORDER BY b",
    ", a", "a,", ",", "SELECT a FROM t", "a AS b", "x -> x", "a FROM b", "a FROM b FOR 1",
    "INTERVAL '1 minute'", "at, INTERVAL '1 minute'", "INTERVAL", "'a', GROUP BY 1", "a => 1",
    "a IN b", "'$.a'", "j, '$['", "'(', b", "b, '('", "b, 'a(?=b)', 'x', 'g'", "CASE", "[a, b]",
    "ARRAY[a]", "l[1:]", "(a, b)", "-", "NULL", "a AS INT", "at AS", "a b c", "(((", "'", "1e400",
    "-1, 0.5, a", "{a: 1}", "MAP {'a': 1}",
]  # fmt: skip
SUFFIXES = [
    "", "", "", "", " WITHIN GROUP (ORDER BY a)", " WITHIN GROUP (ORDER BY a DESC, b)",
    " WITHIN GROUP ()", " WITHIN GROUP", " FILTER (WHERE a > 1)", " FILTER ()", " FILTER",
    " OVER ()", " OVER (PARTITION BY a ORDER BY b)", " OVER w", " OVER", " IGNORE NULLS", "[1]",
    "[", "[1:2]", "::INT", "::", "->'a'", "->>", ".a", ".*", " AS", " IS NULL",
    " AT TIME ZONE 'UTC'", " LIKE ANY (a)", " = ANY(l)", " ~ 'a'", " SIMILAR TO", " BETWEEN",
    " % 2", " || b", " IN (SELECT a FROM t)", "()",
]  # fmt: skip


def run(seed: int, count: int) -> Iterator[str]:
    """Plans mutants. Yields an exception that is not an error of the user, with its mutant."""
    random = Random(seed)
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        originals = [tokens(text) for text in _scripts(Path(directory))]
        words = sorted({word for each in originals for word in each if len(word) < 40})
        functions = sorted({name for each in originals for name in _called(each)})
        os.chdir(directory)
        try:
            for number in range(count):
                if random.random() < 0.4:
                    text = query(call(random, functions), random.choice(AFTER))
                else:
                    text = mutant(random, originals, words)
                problem = problem_of(partial(_plan, text))
                if problem is not None:
                    yield f"seed {seed}, number {number}: {problem}\n{text}"
        finally:
            os.chdir(before)


def _plan(text: str) -> None:
    _, errors = app.script_plan(text)
    raise_all(errors)


def tokens(text: str) -> list[str]:
    """Returns the tokens of a script, with its blanks."""
    return TOKEN.findall(text)


def call(random: Random, functions: Sequence[str], depth: int = 0) -> str:
    """Returns a call of a function with unusual arguments."""
    arguments = random.choice(ARGUMENTS)
    if depth < 2 and random.random() < 0.3:
        arguments = arguments.replace("a", call(random, functions, depth + 1), 1)
    return f"{random.choice(functions)}({arguments}){random.choice(SUFFIXES)}"


def query(expression: str, rest: str) -> str:
    """Returns a script with a query of an expression."""
    return f"{TABLES}CREATE VIEW v AS SELECT {expression} AS x FROM t{rest};\n{INSERT}"


def _called(parts: Sequence[str]) -> Iterator[str]:
    """Yields the names before opening brackets."""
    for name, bracket in pairwise(parts):
        if bracket == "(" and name.isidentifier():
            yield name


def mutant(random: Random, originals: Sequence[list[str]], words: Sequence[str]) -> str:
    """Returns a script with one to four changes of its tokens."""
    parts = list(random.choice(originals))
    for _ in range(random.choice([1, 1, 1, 2, 2, 3, 4])):
        start = random.randrange(len(parts) + 1)
        stop = min(len(parts), start + random.choice([0, 1, 1, 1, 2, 3, 8]))
        match random.randrange(8):
            case 0:
                parts[start:stop] = [random.choice(words)]
            case 1:
                parts[start:stop] = [random.choice(PHRASES)]
            case 2:
                parts[start:start] = parts[start:stop]
            case 3:
                part = parts[start:stop]
                del parts[start:stop]
                target = random.randrange(len(parts) + 1)
                parts[target:target] = part
            case 4:
                del parts[start:stop]
            case 5:
                _replace_brackets(random, parts, [random.choice(PHRASES)])
            case 6:
                _replace_brackets(random, parts, _part(random, random.choice(originals)))
            case _:
                parts[start:start] = _part(random, random.choice(originals))
    return "".join(parts)


def _replace_brackets(random: Random, parts: list[str], content: list[str]) -> None:
    """Replaces the content of a pair of brackets."""
    pairs = list(_brackets(parts))
    if pairs:
        opening, closing = random.choice(pairs)
        parts[opening + 1 : closing] = content


def _part(random: Random, parts: Sequence[str]) -> list[str]:
    """Returns the content of a pair of brackets, or a few tokens."""
    pairs = list(_brackets(parts))
    if pairs and random.random() < 0.7:
        opening, closing = random.choice(pairs)
        return list(parts[opening + random.randint(0, 1) : closing + 1][:60])
    start = random.randrange(len(parts) + 1)
    return list(parts[start : start + random.randint(1, 12)])


def _brackets(parts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yields the pairs of brackets."""
    open_: list[int] = []
    for index, part in enumerate(parts):
        if part in OPENING:
            open_.append(index)
        elif open_ and part == OPENING[parts[open_[-1]]]:
            yield open_.pop(), index


def _scripts(directory: Path) -> Iterator[str]:
    """Copies the pipelines into a directory. Yields scripts: theirs, and one for each statement."""
    for path in copy_pipelines(directory, DIRECTORIES):
        if path.suffix == ".sql":
            yield path.read_text(encoding="utf-8")
    for text in _queries():
        yield f"{TABLES}CREATE VIEW v AS {text};\n{INSERT}"


AFTER = [
    "", "", " GROUP BY a", " GROUP BY 1", " GROUP BY ALL", " HAVING x", " ORDER BY x", " WHERE x",
]  # fmt: skip
INSERT = "INSERT INTO o SELECT * FROM v;\n"
TABLES = """\
CREATE TABLE t (a INT, b TEXT, c DOUBLE, at TIMESTAMP, j JSON, l INT[], WATERMARK FOR at)
WITH (connector = 'single_file', path = 'in/*.json', format = 'json', type = 'source');
CREATE TABLE o (a INT) WITH (connector = 'blackhole');
"""


def _queries() -> Iterator[str]:
    """Yields the statements of the rules of translation, and the samples of functions."""
    for path in sorted((GOLDEN / "dialect").glob("*.sql")):
        for statement in re.split(r"\n(?! )", path.read_text(encoding="utf-8")):
            if statement.strip():
                yield statement
    sys.path.insert(0, str(GOLDEN))
    from function_samples import FAMILIES, read_family

    for family in FAMILIES:
        for text in read_family(family).texts:
            yield f"SELECT {text} AS x FROM t"


if __name__ == "__main__":
    main(run)
