"""Values from the environment and secrets."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.core.errors import SpecError, report
from penstock.spec import secrets
from penstock.spec.document import Scalar, parse
from penstock.spec.interpolate import Interpolation
from penstock.spec.nodes import Mapping

ENV = {
    "PORT": "8080",
    "NAME": "x",
    "EMPTY": "",
    "ON": "true",
    "EVIL": "[1, 2]\nb: c",
    "ZERO": "007",
}


def replaced(text: str, env: dict[str, str] | None = None) -> tuple[Scalar, list[SpecError]]:
    interpolation = Interpolation(ENV if env is None else env)
    root = interpolation.node(parse(f"a: {text}\n", "x.yaml").root)
    assert isinstance(root, Mapping)
    node = root.get("a")
    assert isinstance(node, Scalar)
    return node, interpolation.mistakes


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
        ("${NONE:-null}", None), ("${NONE:-http://a:1/b?c=d}", "http://a:1/b?c=d"),
    ],
)  # fmt: skip
def test_replaced(text: str, value: object) -> None:
    node, mistakes = replaced(text)
    assert not mistakes
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
        ("${env:NAME}", "invalid-variable"), ("${NAME }", "invalid-variable"),
    ],
)  # fmt: skip
def test_mistakes(text: str, code: str) -> None:
    node, mistakes = replaced(text)
    assert [each.code for each in mistakes] == [code]
    assert node.broken


def test_all_mistakes_of_a_value_with_their_places() -> None:
    _, mistakes = replaced("|\n  x ${A}\n  ${NAME} ${B} ${C}")
    assert [str(each.where) for each in mistakes] == ["x.yaml:2:5", "x.yaml:3:11", "x.yaml:3:16"]


def test_nested_place() -> None:
    _, (mistake,) = replaced("${NONE:-x${NO}}")
    assert str(mistake.where) == "x.yaml:1:13"


def test_keys_and_numbers_stay() -> None:
    root = parse("${NAME}: 5\n").root
    assert Interpolation(ENV).node(root) is root


def test_places_behind_a_replaced_part() -> None:
    node, _ = replaced("|\n  SELECT ${NAME}, nope\n  FROM ${EVIL} x, lost")
    assert isinstance(node.value, str)
    for word in ("nope", "lost"):
        before = node.value[: node.value.index(word)]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        where = node.place(line, column, len(word))
        assert where.text[where.column - 1 :][: where.length] == word
    where = node.place(1, 8)
    assert where.text[where.column - 1 :][: where.length] == "${NAME}"


def test_repeated_nodes_are_replaced_once() -> None:
    interpolation = Interpolation({})
    interpolation.node(parse("a: &a ${NONE}\nb: *a\nc: *a\n").root)
    assert len(interpolation.mistakes) == 1


@pytest.fixture
def directory(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "password").write_text("hunter2\n")
    (tmp_path / "pin").write_text("1234")
    (tmp_path / "raw").write_bytes(b"\xff")
    return {"PENSTOCK_SECRETS": str(tmp_path)}


def test_secret_is_never_shown(directory: dict[str, str]) -> None:
    node, mistakes = replaced("${secret:file/db/password}", directory)
    assert not mistakes
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
        ("file/../x", "not a name below"),
        ("file//etc/passwd", "not a name below"),
        ("fil/x", 'did you mean "file"?'),
        ("x", "names no secret"),
        ("", "names no secret"),
    ],
)
def test_unknown_secret(directory: dict[str, str], reference: str, words: str) -> None:
    _, (mistake,) = replaced(f"${{secret:{reference}}}", directory)
    assert mistake.code == "unknown-secret"
    assert words in report(mistake)


def test_no_directory_of_secrets(tmp_path: Path) -> None:
    _, (mistake,) = replaced("${secret:file/x}", {"PENSTOCK_SECRETS": str(tmp_path / "no")})
    assert "PENSTOCK_SECRETS" in report(mistake)


def test_provider_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    def vault(name: str) -> str:
        if name != "db/x":
            raise LookupError(name)
        return "s3cr3t"

    entry = SimpleNamespace(name="vault", load=lambda: vault)
    monkeypatch.setattr(secrets, "entry_points", lambda group: [entry])
    assert replaced("${secret:vault/db/x}", {})[0].data() == "s3cr3t"
    _, (mistake,) = replaced("${secret:vault/db/y}", {})
    assert 'vault" has no secret "db/y"' in mistake.message
