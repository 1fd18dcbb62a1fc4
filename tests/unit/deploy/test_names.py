"""Names of objects and keys of Kubernetes."""

from __future__ import annotations

import re

import pytest

from penstock.core.errors import PenstockError
from penstock.deploy.kubernetes.names import (
    MAX_NAME,
    check_image,
    check_name,
    check_namespace,
    keys,
    object_name,
)

LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


@pytest.mark.parametrize(
    ("pipeline", "name"),
    [
        ("shop", "shop"),
        ("Shop_Orders.v2", "shop-orders-v2"),
        ("2024", "pipeline-2024"),
        ("a-", "a"),
        ("__", "pipeline"),
        ("x" * 63, f"{'x' * 39}-e1d9d1b5"),
        (f"{'x' * 38}-{'y' * 20}", None),
    ],
)
def test_a_name_is_a_dns_label(pipeline: str, name: str | None) -> None:
    found = object_name(pipeline)
    assert LABEL.fullmatch(found) and len(found) <= MAX_NAME
    check_name(found)
    if name is not None and len(pipeline) < MAX_NAME:
        assert found == name


def test_long_names_differ() -> None:
    assert object_name("x" * 60 + "a") != object_name("x" * 60 + "b")


@pytest.mark.parametrize("name", ["Shop", "1shop", "shop-", "", "a" * 49, "a.b", "a\n"])
def test_a_wrong_name_has_the_nearest_one(name: str) -> None:
    with pytest.raises(PenstockError, match="--name") as error:
        check_name(name)
    check_name(str(error.value.hint).split()[-1].removesuffix("."))


def test_namespaces_and_images() -> None:
    check_namespace("123")
    check_image("registry.example.com:5000/team/penstock@sha256:0a")
    for namespace in ("", "Upper", "a/b", "x" * 64):
        with pytest.raises(PenstockError, match="--namespace"):
            check_namespace(namespace)
    for image in ("", "a b", "a\nb", "-x", "a;b"):
        with pytest.raises(PenstockError, match="--image"):
            check_image(image)


def test_keys_are_valid_and_different() -> None:
    paths = ["a/b.py", "a_b.py", "..data", "ä.py", "x" * 400, "b b.sql", "plain.yaml", "."]
    found = keys(paths)
    assert len(set(found.values())) == len(paths)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,253}", key) for key in found.values())
    assert not any(key.startswith("..") or key == "." for key in found.values())
    assert found["plain.yaml"] == "plain.yaml"
