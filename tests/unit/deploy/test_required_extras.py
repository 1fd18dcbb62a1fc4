"""The extras of pipelines whose files and state are in object stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import app
from penstock.deploy.extras import extras

PIPELINE = """\
name: shop
runtime: {state: STATE}
sources:
  orders: {type: files, path: [in, "SOURCE"], schema: id LONG, format: json}
sinks:
  out: {type: SINK, from: orders, path: "TARGET", MORE}
"""


def test_the_extra_of_the_identity_of_aws(tmp_path: Path) -> None:
    auth = "{username: u, identity: aws}"
    target = f"type: postgres, from: orders, url: postgresql://h/d, table: t, auth: {auth}"
    text = PIPELINE.replace("STATE", "states").replace("SOURCE", "more")
    first, _, _ = text.partition("  out:")
    (tmp_path / "shop.yaml").write_text(f"{first}  out: {{{target}}}\n")
    assert extras(app.plan(tmp_path / "shop.yaml", env={})) == ["aws", "postgres"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"SOURCE": "gs://bucket/in"}, ["object_store"]),
        ({"SOURCE": "s3://bucket/in"}, []),
        ({"TARGET": "az://c/out", "MORE": "format: json, storage: {account: a}"}, ["object_store"]),
        ({"SINK": "delta", "TARGET": "gs://b/t", "MORE": ""}, ["delta", "object_store"]),
        ({"STATE": "gs://bucket/states"}, ["object_state"]),
    ],
    ids=["local", "source", "s3", "sink", "delta", "state"],
)
def test_extras_of_object_stores(
    tmp_path: Path, values: dict[str, str], expected: list[str]
) -> None:
    default = {
        "STATE": "states", "SOURCE": "more", "SINK": "files", "TARGET": "out",
        "MORE": "format: json",
    }  # fmt: skip
    text = PIPELINE
    for name, value in {**default, **values}.items():
        text = text.replace(name, value)
    (tmp_path / "shop.yaml").write_text(text)
    assert extras(app.plan(tmp_path / "shop.yaml", env={})) == expected
