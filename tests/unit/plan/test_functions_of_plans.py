"""Functions in plans: their facts, and their part in fingerprints."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.plan.comparison import compare
from penstock.plan.fingerprint import fingerprint
from penstock.plan.model import Plan

SCRIPT = """
CREATE TABLE orders (id INT, at TIMESTAMP, WATERMARK FOR at AS at)
WITH (connector = 'files', path = 'in/*.json', format = 'json');
CREATE FUNCTION f(x INT) RETURNS INT {clauses} LANGUAGE PYTHON AS $tag$ return {result} $tag$;
CREATE AGGREGATE FUNCTION g(x INT) RETURNS INT LANGUAGE PYTHON AS 'return len(x)';
CREATE MACRO total(x) AS g(f(x));
SELECT {value} AS v FROM orders GROUP BY window(at, '1 minute');
"""


def planned(path: Path, value: str, *, clauses: str = "", result: str = "x + 1") -> Plan:
    text = SCRIPT.format(value=value, clauses=clauses, result=result)
    if "g(" not in value and "total(" not in value:
        text = text.replace(" GROUP BY window(at, '1 minute')", "")
    (path / "a.sql").write_text(text)
    return app.plan(path / "a.sql")


@pytest.mark.parametrize("value", ["g(id)", "total(id)"])
def test_an_aggregate_has_state_also_through_a_macro(tmp_path: Path, value: str) -> None:
    assert planned(tmp_path, value).nodes["result_query"].stateful
    assert not planned(tmp_path, "f(id)").nodes["result_query"].stateful


@pytest.mark.parametrize("value", ["f(id)", "total(id)"])
def test_a_function_is_deterministic_unless_declared(tmp_path: Path, value: str) -> None:
    assert planned(tmp_path, value).nodes["result_query"].deterministic
    random = planned(tmp_path, value, clauses="NOT DETERMINISTIC")
    assert not random.nodes["result_query"].deterministic


@pytest.mark.slow
def test_changed_code_is_a_change_of_the_nodes_that_call_it(tmp_path: Path) -> None:
    before = fingerprint(planned(tmp_path, "total(id)"))
    assert compare(before, fingerprint(planned(tmp_path, "total(id)"))) == []
    (change,) = compare(before, fingerprint(planned(tmp_path, "total(id)", result="x + 2")))
    assert change.subject == 'transform "result_query"'
    assert change.effect == "incompatible"
    assert change.reason.startswith("function f changed")
    before = fingerprint(planned(tmp_path, "g(id)"))
    assert compare(before, fingerprint(planned(tmp_path, "g(id)", result="x + 2"))) == []
