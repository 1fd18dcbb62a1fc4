"""Values from the environment and secrets."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.core.error_report import format_error
from penstock.core.errors import SpecError
from penstock.spec.documents import secrets
from penstock.spec.documents.interpolate import Interpolator
from penstock.spec.tree.nodes import MappingNode, ScalarNode
from penstock.spec.yaml.parse import parse_document

ENV = {
    "PORT": "8080",
    "NAME": "x",
    "EMPTY": "",
    "ON": "true",
    "EVIL": "[1, 2]\nb: c",
    "ZERO": "007",
    "spring.port": "1",
}


def replaced(text: str, env: dict[str, str] | None = None) -> tuple[ScalarNode, list[SpecError]]:
    interpolation = Interpolator(ENV if env is None else env)
    root = interpolation.node(parse_document(f"a: {text}\n", "x.yaml").root)
    assert isinstance(root, MappingNode)
    node = root.get("a")
    assert isinstance(node, ScalarNode)
    return node, interpolation.errors


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${PORT}", 8080), ("${ON}", True), ("${ZERO}", 7), ("'${PORT}'", "8080"),
        ('"${PORT}"', "8080"), ("${PORT}1", "80801"), ("${PORT}${PORT}", "80808080"),
        ("a-${NAME}-b", "a-x-b"), ("${EVIL}", "[1, 2]\nb: c"), ("${EMPTY}", ""),
        ("${NONE:-}", ""), ("${NONE:-d}", "d"), ("${EMPTY:-d}", "d"), ("${NAME:-d}", "x"),
        ("${NONE:-5}", 5), ("${NONE:-${PORT}}", 8080), ("${NONE:-${NO:-${NAME}}}", "x"),
        ("${NONE:-a}b}", "ab}"), ("${NAME:?why}", "x"), ("$${NAME}", "${NAME}"),
        ("$$${NAME}", "$${NAME}"), ("$NAME", "$NAME"), ("a$", "a$"), ("$5 ${NAME}", "$5 x"),
        ("${env:PORT}", 8080), ("a ${env:NAME}", "a x"), ("${env:NONE:-${env:NAME}}", "x"),
        ("${spring.port}", 1), ("${env:spring.port}", 1), ("${a.b:-d}", "d"),
        ("${env:NAME:?why}", "x"), ("${NONE:-null}", None), ("${NONE:-http://a:1/b?c=d}", "http://a:1/b?c=d"),
    ],
)  # fmt: skip
def test_replaced(text: str, value: object) -> None:
    node, errors = replaced(text)
    assert not errors
    assert node.data() == value
    assert type(node.value) is type(value)
    assert node.written == text.strip("'\"")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("${NONE}", "unset-variable"), ("${NONE:?}", "unset-variable"),
        ("${EMPTY:?}", "unset-variable"), ("${NONE:-${NO}}", "unset-variable"),
        ("${}", "invalid-variable"), ("${1}", "invalid-variable"), ("${a b}", "invalid-variable"),
        ("${NAME", "invalid-variable"), ("${NAME-x}", "invalid-variable"),
        ("${env:NONE}", "unset-variable"), ("${env:}", "invalid-variable"),
        ("${env:a b}", "invalid-variable"), ("${NAME }", "invalid-variable"),
    ],
)  # fmt: skip
def test_errors(text: str, code: str) -> None:
    node, errors = replaced(text)
    assert [each.code for each in errors] == [code]
    assert node.invalid


def test_all_errors_of_a_value_with_their_places() -> None:
    _, errors = replaced("|\n  x ${A}\n  ${NAME} ${B} ${C}")
    assert [str(each.where) for each in errors] == ["x.yaml:2:5", "x.yaml:3:11", "x.yaml:3:16"]


def test_nested_place() -> None:
    _, (error,) = replaced("${NONE:-x${NO}}")
    assert str(error.where) == "x.yaml:1:13"


def test_keys_and_numbers_stay() -> None:
    root = parse_document("${NAME}: 5\n").root
    assert Interpolator(ENV).node(root) is root


def test_nested_place_below_a_prefix() -> None:
    _, (error,) = replaced("${env:NONE:-x${NO}}")
    assert str(error.where) == "x.yaml:1:17"


def test_places_behind_a_replaced_part() -> None:
    node, _ = replaced("|\n  SELECT ${NAME}, nope\n  FROM ${EVIL} x, lost")
    assert isinstance(node.value, str)
    for word in ("nope", "lost"):
        before = node.value[: node.value.index(word)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        where = node.locate(line, column, len(word))
        assert where.text[where.column - 1 :][: where.length] == word
    where = node.locate(1, 8)
    assert where.text[where.column - 1 :][: where.length] == "${NAME}"


def test_repeated_nodes_are_replaced_once() -> None:
    interpolation = Interpolator({})
    interpolation.node(parse_document("a: &a ${NONE}\nb: *a\nc: *a\n").root)
    assert len(interpolation.errors) == 1


@pytest.fixture
def directory(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "password").write_text("hunter2\n")
    (tmp_path / "pin").write_text("1234")
    (tmp_path / "raw").write_bytes(b"\xff")
    return {"PENSTOCK_SECRETS": str(tmp_path)}


def test_secret_is_never_shown(directory: dict[str, str]) -> None:
    node, errors = replaced("${secret:file/db/password}", directory)
    assert not errors
    assert node.data() == "hunter2"
    assert "hunter2" not in repr(node) + repr(node.data()) + repr([node.data()])
    again = pickle.loads(pickle.dumps(node.data()))
    assert again == "hunter2" and "hunter2" not in repr(again)


def test_secret_stays_text(directory: dict[str, str]) -> None:
    assert replaced("${secret:file/pin}", directory)[0].data() == "1234"


def test_secret_in_a_default(directory: dict[str, str]) -> None:
    node, _ = replaced("x-${NONE:-${secret:file/pin}}", directory)
    assert node.data() == "x-1234"
    assert node.secret


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("file/pim", 'did you mean "pin"?'),
        ("file/db/passwort", 'did you mean "password"?'),
        ("file/db", "is a directory"),
        ("file/raw", "not UTF-8"),
        ("file/../x", "outside the directory"),
        ("file//etc/passwd", "outside the directory"),
        ("fil/x", 'did you mean "file"?'),
        ("x", "not a valid reference"),
        ("", "not a valid reference"),
    ],
)
def test_unknown_secret(directory: dict[str, str], reference: str, words: str) -> None:
    _, (error,) = replaced(f"${{secret:{reference}}}", directory)
    assert error.code == "unknown-secret"
    assert words in format_error(error)


def test_no_directory_of_secrets(tmp_path: Path) -> None:
    _, (error,) = replaced("${secret:file/x}", {"PENSTOCK_SECRETS": str(tmp_path / "no")})
    assert "PENSTOCK_SECRETS" in format_error(error)


def test_provider_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def vault(name: str) -> str:
        if name != "db/x":
            raise LookupError(name)
        return "s3cr3t"

    entry = SimpleNamespace(name="vault", load=lambda: vault)
    monkeypatch.setattr(secrets, "entry_points", lambda group: [entry])
    assert replaced("${secret:vault/db/x}", {})[0].data() == "s3cr3t"
    _, (error,) = replaced("${secret:vault/db/y}", {})
    assert 'vault" has no secret "db/y"' in error.message
