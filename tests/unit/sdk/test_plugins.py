"""Plugins of packages and files: what is found, and what is said of broken ones."""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import app
from penstock.cli.main import main
from penstock.core import plugins
from penstock.core.errors import UserError, flatten_errors
from penstock.plan.plugins import broken_plugins
from penstock.sdk import registry

Package = Callable[..., None]
GOOD = """
from penstock.sdk import Config, Transform

class {name}(Transform[Config]):
    \"\"\"Keeps all rows.\"\"\"
    {attribute}
    def output(self, schema):
        return schema

    def apply(self, batch):
        yield batch
"""
PIPELINE = """
name: shop
sources: {{s: {{type: memory, rows: [{{id: 1}}], schema: id INT}}}}
transforms: {{t: {{type: {type}, from: s}}}}
sinks: {{out: {{type: blackhole, from: t}}}}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """`package(name, module, code, **groups)` installs a package with entry points."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(str(site))
    modules = set(sys.modules)

    def install(name: str, module: str, code: str, **groups: str) -> None:
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"[penstock.{group}]\n{entry}\n" for group, entry in groups.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        (site / f"{module}.py").write_text(code)
        importlib.invalidate_caches()
        _clear_entries()

    yield install
    _clear_entries()
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def _clear_entries() -> None:
    registry.installed.cache_clear()
    registry.entries.cache_clear()
    plugins.entry_points.cache_clear()


@pytest.fixture
def packages(package: Package) -> None:
    good = GOOD.format(name="Good", attribute="")
    package("good", "goodmod", good, transforms="good = goodmod:Good")
    package("gone", "gonemod", "import nowhere_at_all", sources="gone = gonemod:Gone")
    package("base", "basemod", "class Wrong: pass", sinks="base = basemod:Wrong")
    old = GOOD.format(name="Old", attribute="sdk_version = 99")
    package("old", "oldmod", old, transforms="old = oldmod:Old\nsql = oldmod:Old")
    package("one", "onemod", good, transforms="twin = onemod:Good")
    package("two", "twomod", good, transforms="twin = twomod:Good")
    package("exits", "exitmod", "import sys\nsys.exit('bye')", formats="exits = exitmod:X")
    lacks = "from penstock.sdk import Transform\nclass Lacks(Transform): pass"
    package("lacks", "lacksmod", lacks, transforms="lacks = lacksmod:Lacks")
    package("text", "textmod", "f = 1", preprocessors="text = textmod:f")
    package("front", "frontmod", "1 / 0", front_ends="front = frontmod:F")
    code = "from penstock import udf\n@udf\ndef half(n: float) -> float:\n    return n / 2\n"
    functions = "half = funcmod:half\nthird = funcmod:third"
    package("func", "funcmod", code, functions=functions)


@pytest.mark.usefixtures("packages")
def test_each_broken_plugin_is_named_with_its_package_file_and_reason() -> None:
    found = {(each.package, each.name): each for each in broken_plugins()}
    reasons = {
        ("gone", "gone"): ("ModuleNotFoundError: No module named 'nowhere_at_all'", "gonemod.py"),
        ("base", "base"): ("Wrong is no subclass of Sink", "basemod.py"),
        ("old", "old"): ("Old is written for version 99 of the SDK, expected 1", "oldmod.py"),
        ("old", "sql"): ('Penstock has a transform "sql"', "oldmod"),
        ("one", "twin"): ("the name is used by several packages: one, two", "onemod"),
        ("two", "twin"): ("the name is used by several packages: one, two", "twomod"),
        ("exits", "exits"): ("SystemExit: bye", "exitmod.py, line 2"),
        ("lacks", "lacks"): ("Lacks has no method apply", "lacksmod.py"),
        ("text", "text"): ("expected a function, found int", "textmod.py"),
        ("front", "front"): ("ZeroDivisionError: division by zero", "frontmod.py, line 1"),
        ("func", "third"): ("the file has no function third", "funcmod.py"),
    }
    assert found.keys() == reasons.keys()
    for key, (reason, file) in reasons.items():
        assert found[key].reason.startswith(reason) and file in found[key].file


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
def test_commands_name_broken_plugins_and_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.yaml").write_text(PIPELINE.format(type="good"))
    assert main(["check", str(tmp_path / "good.yaml"), "--level", "static"]) == 0
    assert main(["list"]) == 0
    assert main(["doctor", "--quick"]) == 1
    checked = capsys.readouterr()
    for text in (checked.err, checked.out):
        assert "of the package gone cannot be used" in " ".join(text.split())
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert "good" in {each["type"] for each in listed["transforms"]}
    assert "half" in {each["name"] for each in listed["plugins"]}
    assert len(listed["broken_plugins"]) == 11


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        ("old", "version 99"),
        ("twin", "several packages: one, two"),
        ("map, set: {h: third(id)}", "the file has no function third"),
    ],
)
def test_a_pipeline_that_uses_a_broken_plugin_has_the_reason(
    tmp_path: Path, type_: str, reason: str
) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.format(type=type_))
    with pytest.raises(UserError) as caught:
        app.plan(tmp_path / "p.yaml")
    errors = {error.code: error.message for error in flatten_errors(caught.value)}
    assert reason in errors["broken-plugin"]


@pytest.mark.usefixtures("packages")
def test_functions_of_packages_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.format(type="map, set: {h: half(id)}"))
    assert [each.name for each in app.plan(tmp_path / "p.yaml").functions] == ["half"]
    own = "functions: {half: {args: [x], sql: x / 4}}\n"
    (tmp_path / "p.yaml").write_text(own + PIPELINE.format(type="map, set: {h: half(id)}"))
    assert [each.sql for each in app.plan(tmp_path / "p.yaml").functions] == ["x / 4"]


def local(tmp_path: Path, code: str, type_: str = "mine") -> Path:
    (tmp_path / "mine.py").write_text(code)
    (tmp_path / "p.yaml").write_text("plugins: mine.py\n" + PIPELINE.format(type=type_))
    return tmp_path / "p.yaml"


NAMED = "from penstock.sdk import plugin\n" + GOOD.replace("class", "@plugin('{type}')\nclass")


@pytest.mark.slow
def test_another_process_imports_a_class_of_a_file(tmp_path: Path) -> None:
    code = NAMED.format(name="Mine", attribute="", type="mine")
    plan = app.plan(local(tmp_path, code))
    data = pickle.dumps(plan.nodes["t"].component)
    program = "import pickle, sys; print(type(pickle.load(sys.stdin.buffer)).__name__)"
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True)
    assert done.stdout.split() == [b"Mine"], done.stderr
    (tmp_path / "mine.py").write_text(code.replace("Mine", "Changed"))
    assert type(app.plan(tmp_path / "p.yaml").nodes["t"].component).__name__ == "Changed"
    with pytest.raises(UserError):
        registry.find("transform", "mine")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero ("),
        ("x = (", "SyntaxError: '(' was never closed ("),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        (NAMED.format(name="A", attribute="", type="sql"), 'the name "sql" is that of a transform'),
        (
            NAMED.format(name="A", attribute="", type="a")
            + NAMED.format(name="B", attribute="", type="a"),
            "the file has two of kind transform",
        ),
        (
            "from penstock.sdk import plugin\n@plugin('x')\nclass X: pass",
            "expected a component of the SDK",
        ),
        (NAMED.format(name="A", attribute="sdk_version = 0", type="a"), "version 0 of the SDK"),
    ],
)
def test_a_broken_file_is_an_error_at_its_place(tmp_path: Path, code: str, reason: str) -> None:
    path = local(tmp_path, code, "drop, columns: [x]")
    with pytest.raises(UserError) as caught:
        app.plan(path)
    error = next(e for e in flatten_errors(caught.value) if e.code == "broken-plugin")
    assert reason in error.message and "mine.py" in error.message
    assert error.where is not None and error.where.line == 1


def test_a_missing_file_and_a_file_without_plugins(tmp_path: Path) -> None:
    path = local(tmp_path, "x = 1")
    (tmp_path / "p.yaml").write_text("plugins: [mine.py, gone.py]\n" + PIPELINE.format(type="mine"))
    with pytest.raises(UserError) as caught:
        app.plan(path)
    codes = {error.code for error in flatten_errors(caught.value)}
    assert {"missing-file", "unknown-type"} <= codes
