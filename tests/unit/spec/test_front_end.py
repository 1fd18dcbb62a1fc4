"""A front end of another language: JSON Lines, one node a line, without a YAML tree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import PenstockError, SpecError, flatten_errors
from penstock.core.location import Location
from penstock.spec import front_end
from penstock.spec.front_end import DocumentFrontEnd, document_front_end, select_front_end
from penstock.spec.load import load
from penstock.spec.parsed import Overrides, ParsedPipeline
from penstock.spec.script.front_end import ScriptFrontEnd
from penstock.spec.source_map import Route, SourceMap, SourceValue
from penstock.spec.tree.document import Document
from penstock.spec.yaml.front_end import YamlFrontEnd
from penstock.spec.yaml.parse import parse_document


class LineMap:
    """The source map of JSON Lines: a node is a line, a value stands behind its key."""

    def __init__(self, path: Path, data: dict[str, Any], lines: dict[Route, int]) -> None:
        self.files = (str(path),)
        self._data, self._numbers = data, lines
        self._lines = path.read_text().splitlines()

    def find(self, route: Route) -> SourceValue | None:
        value: Any = self._data
        for step in route:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        if isinstance(value, dict | list):
            return SourceValue(value, inline=True)
        return SourceValue(value, str(value), str(value), quoted=isinstance(value, str))

    def key(self, route: Route) -> Location:
        return self._locate(route, value=False)

    def value(self, route: Route) -> Location:
        return self._locate(route, value=True)

    def inside(self, route: Route, line: int, column: int, length: int = 1) -> Location:
        where = self._locate(route, value=True)
        return Location(where.file, where.line, where.column + column, length, where.text)

    def base(self, route: Route) -> Path:
        return Path(self.files[0]).absolute().parent

    def _locate(self, route: Route, *, value: bool) -> Location:
        number = self._numbers.get(route[:2], 1)
        text = self._lines[number - 1]
        start, end = 0, len(text)
        for step in route[2:]:
            quoted = f"{json.dumps(step)}:"
            if isinstance(step, str) and quoted in text[start:]:
                start = text.index(quoted, start)
                end = start + len(quoted) - 1
                if value:
                    start = end + 2
                    _, end = json.JSONDecoder().raw_decode(text, start)
        return Location(self.files[0], number, start + 1, end - start, text)


class LineFrontEnd:
    def accepts(self, path: str) -> bool:
        return path.endswith(".jsonl")

    def read(
        self, paths: Sequence[str], *, overrides: Overrides = (), env: Mapping[str, str]
    ) -> ParsedPipeline:
        (path,) = paths
        data: dict[str, Any] = {}
        lines: dict[Route, int] = {}
        for number, text in enumerate(Path(path).read_text().splitlines(), 1):
            node = json.loads(text)
            section, name = f"{node.pop('node')}s", node.pop("name")
            data.setdefault(section, {})[name] = node
            lines[section, name] = number
        source_map: SourceMap = LineMap(Path(path), data, lines)
        return ParsedPipeline(data, source_map)


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    entries = [
        SimpleNamespace(name="yaml", load=lambda: YamlFrontEnd),
        SimpleNamespace(name="jsonl", load=lambda: LineFrontEnd),
    ]
    monkeypatch.setattr(front_end, "entry_points", lambda group: entries)
    front_end.front_ends.cache_clear()
    yield tmp_path / "shop.jsonl"
    front_end.front_ends.cache_clear()


SOURCE = '{"node": "source", "name": "orders", "type": "generate", "fields": {"id": "sequence"}}'
SINK = '{"node": "sink", "name": "out", "type": "print", "from": "orders"}'


def sql(text: str) -> str:
    return json.dumps({"node": "transform", "name": "large", "type": "sql", "sql": text})


def errors_of(path: Path, *nodes: str) -> list[PenstockError]:
    path.write_text("\n".join(nodes))
    with pytest.raises(PenstockError) as caught:
        app.plan(path)
    return list(flatten_errors(caught.value))


def test_plan(lines: Path) -> None:
    lines.write_text("\n".join([SOURCE, sql("SELECT id FROM orders"), SINK]))
    plan = app.plan(lines)
    assert plan.name == "shop"
    assert plan.nodes["large"].inputs == ("orders",)
    assert [(warning.code, warning.where and warning.where.line) for warning in plan.warnings] == [
        ("unused-transform", 2)
    ]


@pytest.mark.parametrize(
    ("nodes", "code", "line", "marked"),
    [
        ((SOURCE, SINK.replace('"orders"', '"order"')), "unknown-input", 2, '"order"'),
        ((SOURCE, SINK.replace('"from": "orders"', '"from": 5')), "wrong-type", 2, "5"),
        ((SOURCE, SINK.replace("print", "prnt")), "unknown-type", 2, '"prnt"'),
        ((SOURCE.replace('"fields"', '"rowz": 5, "fields"'), SINK), "unknown-option", 1, '"rowz"'),
        ((SOURCE, sql("SELECT * FROM orders, items"), SINK), "unknown-node", 2, "items"),
        ((SOURCE, SINK, SINK.replace('"out"', '"ORDERS"')), "duplicate-name", 3, None),
    ],
)
def test_locations_of_errors(
    lines: Path, nodes: tuple[str, ...], code: str, line: int, marked: str | None
) -> None:
    (error,) = errors_of(lines, *nodes)
    where = error.where
    assert where is not None
    assert (error.code, where.file, where.line) == (code, str(lines), line)
    if marked is not None:
        assert where.text[where.column - 1 :][: where.length] == marked


def test_files_of_two_languages(lines: Path) -> None:
    with pytest.raises(SpecError) as caught:
        select_front_end([str(lines), "shop.yaml"])
    assert caught.value.code == "several-languages"


def test_yaml_is_the_front_end_of_other_files(lines: Path) -> None:
    assert isinstance(select_front_end(["-"]), YamlFrontEnd)
    assert isinstance(select_front_end(["pipeline"]), YamlFrontEnd)


@pytest.mark.parametrize(
    ("name", "language"),
    [("a.sql", ScriptFrontEnd), ("A.SQL", ScriptFrontEnd), ("a.yml", YamlFrontEnd)],
)
def test_front_end_of_a_file_among_others(name: str, language: type) -> None:
    assert isinstance(document_front_end(name), language)


def test_files_of_a_further_language_are_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lists(DocumentFrontEnd):
        """A language whose files are names of generated sources."""

        def accepts(self, path: str) -> bool:
            return path.endswith(".list")

        def read_document(self, path: str, where: Location | None = None) -> Document:
            names = Path(path).read_text().split()
            text = "".join(f"  {name}: {{type: generate}}\n" for name in names)
            return parse_document(f"sources:\n{text}", path, Path(path).parent)

    monkeypatch.setitem(front_end.front_ends(), "list", Lists())
    (tmp_path / "more.list").write_text("orders items")
    (tmp_path / "main.yaml").write_text("include: '*.list'\n")
    (tmp_path / "view.sql").write_text("SELECT * FROM orders, items")
    files = [tmp_path / name for name in ("main.yaml", "view.sql")]
    parsed = load(files, env={})
    assert not parsed.errors
    assert list(parsed.data["sources"]) == ["orders", "items"]
    assert list(parsed.data["sinks"]) == ["result"]
