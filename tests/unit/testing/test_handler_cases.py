"""Files with cases of handlers: errors at their place, and results of calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main

Run = Callable[..., tuple[int, Any, str]]
COLUMNS = [
    {"name": "time", "type": "timestamp[s]", "values": [0, 5, 6]},
    {"name": "v", "type": "double", "values": [15, 15.5, None]},
]
BATCH = {"columns": COLUMNS, "time": "time"}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(document: Any) -> tuple[int, Any, str]:
        text = document if isinstance(document, str) else json.dumps(document, indent=1)
        (tmp_path / "cases.json").write_text(text)
        code = main(["sdp", "cases.json"])
        out, err = capsys.readouterr()
        assert "error[bug]" not in err
        return code, json.loads(out) if out else None, err

    return run


def case(handler: str = "sort", options: str = "by=v", **keys: Any) -> dict[str, Any]:
    return {"title": "c", "handler": handler, "options": options, "calls": [[BATCH]], **keys}


def changed(index: int, **keys: Any) -> dict[str, Any]:
    columns = [{**each, **(keys if i == index else {})} for i, each in enumerate(COLUMNS)]
    return case(calls=[[{**BATCH, "columns": columns}]])


@pytest.mark.parametrize(
    ("wrong", "message", "hint", "marked"),
    [
        (case("sotr"), 'unknown handler "sotr"', 'did you mean "sort"?', '"sotr"'),
        (case(options="bye=v"), 'unknown option "bye"', 'did you mean "by"?', '"bye=v"'),
        (case("window", "period=5;every=x"), 'option "every": expected an integer, found "x"', "",
         '"period=5;every=x"'),
        (case("window", "period=5"), 'the option "every" is missing', "", '"period=5"'),
        (case("window", "period=5;every=1;period=6"), 'the option "period" is given twice', "", ""),
        (case("window", "period"), 'expected NAME=VALUE, found "period"', "", ""),
        (case("window", "period=5;every=1;fill=2"), 'expected 0, 1, false or true, found "2"', "",
         ""),
        (case("aggregate", "agg=lats:v:x"), 'expected one of first, last, min, max, mean, found '
         '"lats"; did you mean "last"?', "", ""),
        (case("aggregate", "agg=last:v"), 'expected FUNCTION:COLUMN:RESULT, found "last:v"', "",
         ""),
        (case("aggregate", "agg=last:v:x:TAGG"), 'did you mean "TAG"?', "", ""),
        (case("default", "int=y:1.5"), 'option "int": expected an integer, found "1.5"', "", ""),
        (case("default", "double=y:nan"), "expected a finite number, found nan", "", ""),
        (case("derivative", "cases=d:v:-1"), "expected an order of at least 0, found -1", "", ""),
        (case("derivative", "cases=d:v,d:w"), "Duplicating result fields with name: d", "", ""),
        (case("map", "map=x"), 'expected NAME:EXPRESSION, found "x"', "", ""),
        (case("csv", "schema=a:strng"), 'unknown type "strng"', 'did you mean "string"?', ""),
        (case(calls={}), "expected a list of calls, found dict", "", "{}"),
        (case(calls=[BATCH]), "expected a list of batches, found dict", "", ""),
        (case(calls=[[{**BATCH, "tme": "x"}]]), 'unknown key "tme"', 'did you mean "time"?',
         '"tme"'),
        (case(calls=[[{"from": "d output"}]]), 'there is no earlier case "d"', "", '"d output"'),
        (case("graphite", "t=measurement"), 'unknown key "columns"', "", ""),
        (changed(1, type="dobule"), 'unknown type "dobule"', 'did you mean "double"?', '"dobule"'),
        (changed(1, name="time"), 'two columns are called "time"', "", '"time"'),
        (changed(1, values=[1, 2]), "the columns have different lengths: 2, 3", "", ""),
        (changed(1, values=[1, "2", 3]), "expected a value of type double, or null, found '2'", "",
         '"2"'),
        (changed(0, values=[1, 2.5, 3]), "expected an integer for timestamp[s], or null, found 2.5",
         "", "2.5"),
        (changed(0, values=[1, 2**63, 3]), "expected an integer for timestamp[s]", "", ""),
        (case(calls=[[{**BATCH, "column_types": {"v": "FELD"}}]]), 'unknown value "FELD"',
         'did you mean "FIELD"?', '"FELD"'),
        (case(calls=[[{**BATCH, "time_units": {"w": "DAY"}}]]), 'unknown column "w"', "", '"DAY"'),
        (case(calls=[[{**BATCH, "group": [["a"]]}]]), "expected a column and its value as texts",
         "", ""),
    ],
)  # fmt: skip
def test_an_invalid_case(run: Run, wrong: Any, message: str, hint: str, marked: str) -> None:
    code, document, err = run({"cases": [case(), wrong, case()]})
    assert code == 2
    assert message in err and hint in err
    place = next(line for line in err.splitlines() if "-->" in line).split(":")
    line, column = int(place[-2]), int(place[-1])
    text = Path("cases.json").read_text().splitlines()[line - 1]
    assert text[column - 1 :].startswith(marked)
    first, result, last = document["cases"]
    assert first["status"] == last["status"] == ["call 0 OK batches=1"]
    assert result["exit"] == 2 and message in result["status"][0]


def test_an_unknown_key_of_a_case(run: Run) -> None:
    code, document, err = run([case(otputs=[], zzz=1, note="x")])
    assert code == 2 and document["cases"][0]["status"] == ["call 0 OK batches=1"]
    assert 'unknown key "otputs"' in err and 'did you mean "outputs"?' in err
    assert 'unknown key "zzz"' in err


def test_invalid_files(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for text, message in (
        ('{"cases": [}', "invalid JSON: Expecting value"),
        ('{"case": []}', 'unknown key "case"'),
        ("{}", 'the key "cases" is missing'),
        ("3", "expected a list of cases, found int"),
        ("[" * 200_000, "the JSON is nested too deeply"),
    ):
        code, document, err = run(text)
        assert (code, document) == (2, None) and message in err
    assert main(["sdp", "none.json"]) == 2
    assert "cannot read none.json: No such file" in capsys.readouterr().err


def results(run: Run, *cases: dict[str, Any]) -> list[dict[str, Any]]:
    code, document, err = run([*cases])
    assert (code, err) == (0, "")
    found: list[dict[str, Any]] = document["cases"]
    return found


def rows(result: dict[str, Any]) -> list[Any]:
    return [output["rows"] for output in result["outputs"]]


def test_chains_and_dispatch(run: Run) -> None:
    calls = [
        [{"columns": [*COLUMNS, {"name": "h", "type": "string", "values": ["a", "b", "a"]}],
          "time": "time"}]
    ]  # fmt: skip
    options = "by=h;watch=v;as=l;default=10;inc=2;incafter=4"
    levels = [[[0, 15.0, "a", 10.0], [6, None, "a", 10.0]], [[5, 15.5, "b", 10.0]]]
    chain, other, third, fourth = results(
        run,
        case("group | dispatch | threshold", options, calls=calls, title="one"),
        case("group|threshold", options, calls=calls),
        case("dispatch", "handler=sort;by=time", calls=[[{"from": "one output"}]]),
        case("aggregate", "agg=max:v:m", calls=[[{"from": "one"}]], status=[], outputs=[]),
    )
    assert rows(chain) == rows(third) == levels
    assert rows(other) == [levels[0], [[5, 15.5, "b", 20.0]]]
    assert rows(fourth) == [[[6, "a", 15.0]], [[5, "b", 15.5]]]
    assert fourth["outputs"][0]["group"] == {"h": "a"}


def test_errors_of_options_and_calls(run: Run) -> None:
    lacking = {"columns": COLUMNS[:1], "time": "time"}
    first, second, third = results(
        run,
        case("window", "period=5;every=0", calls=[[BATCH], [BATCH]]),
        case("threshold", "watch=v;as=l;default=1;inc=2;incafter=1", calls=[[lacking], [BATCH]]),
        case("filter", "where=v > 15|time IS NOT NULL"),
    )
    assert first["status"] == [
        f"call {number} ERROR Invalid: every must be at least 1 second and at most "
        "1099511627776 seconds, found 0"
        for number in range(2)
    ]
    assert [status[:14] for status in second["status"]] == ["call 0 ERROR K", "call 1 OK batc"]
    assert second["outputs"][0]["call.batch"] == "1.0"
    assert rows(third) == [[[5, 15.5]]]


def test_defaults_maps_and_roles(run: Run) -> None:
    options = "int=a:1;double=b:1.5:TAG;string=c:,d:@kv:x.net:TAG;bool=e:true;int64=f:2"
    wrong = case("default", options)
    assert run([wrong])[0] == 2
    first, second, third = results(
        run,
        case("default", options.removesuffix(";int64=f:2")),
        case("map", "map=x:CASE WHEN v IN (15, 16) THEN 'a,b' ELSE 'c' END,y:v * 2"),
        case("default", "int=v:1;double=v:2;scope=null", title="kinds"),
    )
    assert rows(first)[0][0] == [0, 15.0, 1, 1.5, "", "@kv:x.net", True]
    roles = [column["column_type"] for column in first["outputs"][0]["columns"]]
    assert roles == ["TIME", "-", "FIELD", "TAG", "FIELD", "TAG", "FIELD"]
    assert rows(second) == [[[0, 15.0, "a,b", 30.0], [5, 15.5, "c", 31.0], [6, None, "c", None]]]
    assert third["status"] == [
        "call 0 ERROR Type error: Column v has type double, and its default int64"
    ]


def test_texts_of_csv(run: Run) -> None:
    def calls(*texts: str) -> list[list[dict[str, str]]]:
        return [[{"text": text}] for text in texts]

    first, second, third, fourth = results(
        run,
        case("csv", "", calls=calls("t,v,s\n2020-01-01,1,z\n", "2020-01-02,,x\n2020-01-03,x,y\n")),
        case("csv", "header=every", calls=calls("a,b\n", "a,b\n1,true\n")),
        case("csv", "header=none;schema=a:int64,t:timestamp[s]",
             calls=calls("1,1970-01-01T00:00:01\nx,1970-01-01\n")),
        case("csv", "", calls=calls("", "a,b\n1\n", "3,4")),
    )  # fmt: skip
    assert rows(first) == [[[18262, 1, "z"]], [[18263, None, "x"]]]
    assert first["rejected"] == [
        {"call": 1, "line": 2, "error": 'expected int64, found "x"'}
    ]  # fmt: skip
    assert second["status"] == ["call 0 OK batches=0", "call 1 OK batches=1"]
    assert rows(second) == [[[1, True]]]
    assert rows(third) == [[[1, 1]]] and len(third["rejected"]) == 1
    assert third["outputs"][0]["columns"][1]["column_type"] == "TIME"
    assert fourth["status"][:2] == [
        "call 0 ERROR Invalid: Empty CSV file",
        "call 1 ERROR Invalid: CSV parse error: Expected 2 columns, got 1",
    ]
