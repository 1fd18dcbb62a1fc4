"""The extras of pipelines whose files and state are in object stores."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from penstock import app
from penstock.deploy.extras import extras, extras_of_component
from penstock.transforms.steps import Steps

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


IDENTITY = "auth: {username: u, identity: aws}"
REDIS = "{table: t, key: {value: k}, url: 'redis://h', decode: CODEC}"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (f"inputs: {{i: {{tables: {{query: q, type: mysql, url: 'mysql://h/d', {IDENTITY}}}}}}}",
         ["aws", "mysql"]),
        (f"output: {{target: {{type: postgres, url: 'postgresql://h/d', table: t, {IDENTITY}}}}}",
         ["aws", "postgres"]),
        (f"steps: [{{type: sql, query: q, lookups: [{REDIS}]}}]".replace("CODEC", "{type: json}"),
         ["redis"]),
        (f"steps: [{{type: sql, query: q, lookups: [{REDIS}]}}]".replace(
            "CODEC", "{type: registry, url: 'http://h'}"), ["redis", "registry"]),
        ("steps: [{type: vrl, code: .}, {type: wasm, module: m.wat, function: f}]",
         ["vrl", "wasm"]),
    ],
    ids=["input", "target", "lookup", "codec", "steps"],
)  # fmt: skip
def test_extras_of_options_of_steps(options: str, expected: list[str]) -> None:
    config = Steps.config_type.model_validate(yaml.safe_load(f"{{{options}}}"))
    assert extras_of_component(Steps(config)) == {"datafusion", *expected}


def test_the_extras_of_phases(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(
        "name: shop\nsources:\n  rows:\n    type: hybrid\n    schema: id LONG\n    phases:\n"
        "      - {type: delta, path: 'gs://bucket/rows'}\n"
        f"      - {{type: postgres, url: 'postgresql://h/d', table: t, {IDENTITY}}}\n"
        "      - {type: kafka, brokers: h, topic: t, format: {type: avro, registry: {url: 'http://h'}}}\n"
        "sinks: {out: {type: blackhole, from: rows}}\n"
    )
    found = extras(app.plan(tmp_path / "shop.yaml", env={}))
    assert found == ["aws", "delta", "kafka", "object_store", "postgres", "registry"]


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
