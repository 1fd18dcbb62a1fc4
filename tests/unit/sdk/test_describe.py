"""What components say of themselves."""

from __future__ import annotations

import pytest

from penstock.core.errors import PlanError
from penstock.core.secret import Secret
from penstock.sdk import ByteSize, Config, Duration, UserPath, registry
from penstock.sdk.describe import (
    Description,
    Option,
    describe,
    describe_all,
    describe_model,
    shared_options,
)


class Inner(Config):
    """An inner map."""

    deep: int
    """How deep."""


class Outer(Config):
    path: UserPath | list[UserPath]
    """Where
    it is."""
    wait: Duration = 90.0
    """How long."""
    size: ByteSize | None = 2_000_000
    """How large."""
    password: Secret | None = None
    """A secret."""
    inner: Inner | None = None
    """More."""


OUTER, PARTS = describe_model(Outer)
OPTIONS = {option.name: option for option in OUTER}


def test_types_are_in_a_users_words() -> None:
    assert [option.type for option in OPTIONS.values()] == [
        "path or list of path", "duration", "size", "secret text", "map",
    ]  # fmt: skip


def test_defaults_are_as_a_user_writes_them() -> None:
    assert OPTIONS["wait"].default == "90s"
    assert OPTIONS["size"].default == "2.0 MB"


def test_lines_of_the_source_code_are_joined() -> None:
    assert OPTIONS["path"] == Option("path", "path or list of path", None, True, "Where it is.")


def test_a_secret_is_marked() -> None:
    assert [name for name, option in OPTIONS.items() if option.secret] == ["password"]


def test_a_map_has_its_own_options() -> None:
    (part,) = PARTS
    assert (part.name, part.text) == ("inner", "An inner map.")
    assert [option.name for option in part.options] == ["deep"]


@pytest.fixture(scope="module")
def described() -> dict[registry.Kind, list[Description]]:
    return describe_all()


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", registry.KINDS)
def test_everything_installed_is_described(
    kind: registry.Kind, described: dict[registry.Kind, list[Description]]
) -> None:
    for found in described[kind]:
        assert found.summary and "\n" not in found.summary, found.type
        if kind != "format":
            assert f"type: {found.type}" in found.example, found.type
        every = [*found.options, *(o for part in found.parts for o in part.options)]
        assert all(option.text and option.type for option in every), found.type


def test_kinds_of_a_map_are_named_by_their_type() -> None:
    names = [part.name for part in describe("source", "generate").parts]
    assert "fields (type: sequence)" in names and len(names) == len(set(names))


def test_metadata_is_offered_in_the_words_of_a_schema() -> None:
    offered = {column.name: column.type for column in describe("source", "files").metadata}
    assert offered["modified"] == "TIMESTAMP"


def test_an_extra_that_is_there_lacks_nothing() -> None:
    found = describe("format", "protobuf")
    assert found.extra == "protobuf"
    assert set(found.missing) <= {"grpcio-tools"}


def test_shared_options_have_the_names_of_the_file() -> None:
    assert {"schema", "watermark"} <= {option.name for option in shared_options("source")}
    assert "from" in {option.name for option in shared_options("sink")}
    assert shared_options("format") == ()


def test_an_unknown_type_has_the_nearest_as_hint() -> None:
    with pytest.raises(PlanError) as error:
        describe("sink", "blackhol")
    assert error.value.hint == 'did you mean "blackhole"?'


def test_durations_with_further_conditions_are_durations() -> None:
    (ttl,) = (option for option in describe("sink", "redis").options if option.name == "ttl")
    assert ttl.type == "duration"
