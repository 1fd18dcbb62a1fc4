"""A pipeline with files of all kinds, for the tests of deployments."""

from __future__ import annotations

from pathlib import Path

SECRET = "s3cr3t-of-the-shop"
PIPELINE = """\
# preprocess: tools:same
name: Shop_Orders.v2
include: ../common/sinks.yaml
sources:
  orders:
    type: kafka
    brokers: ${KAFKA}
    topic: ${TOPIC:-orders}
    format: {type: protobuf, schema_file: protos/order.proto, message: shop.Order}
    auth: {mechanism: PLAIN, username: shop, password: "${PASSWORD}"}
    tls: {ca: certs/ca.pem, certificate: certs/shop.pem, key: certs/shop.key}
  names: {type: files, path: data/names.csv, schema: id BIGINT, static: true}
  raw: {type: files, path: data/raw-*.csv, schema: id BIGINT}
transforms:
  priced: {type: python, from: orders, function: "pricing:price", schema: id BIGINT}
  all_raw: {type: sql, sql: SELECT twice(id) AS id FROM raw JOIN names USING (id)}
function_files: [functions.py]
"""
SINKS = """\
sinks:
  out: {type: blackhole, from: priced}
  raw_out: {type: http, from: all_raw, url: "http://out", headers: {key: "${secret:file/a/key}"}}
"""
FILES = {
    "shop/shop.yaml": PIPELINE,
    "common/sinks.yaml": SINKS,
    "shop/tools.py": "def same(text, options):\n    return text\n",
    "shop/functions.py": (
        "import json\nimport penstock\n\n\n@penstock.udf\ndef twice(n: int) -> int:\n"
        "    return 2 * n\n"
    ),
    "shop/pricing.py": "from rules import vat\n\n\ndef price(batch):\n    return batch\n",
    "shop/rules/__init__.py": "",
    "shop/rules/vat.py": "import pyarrow\n",
    "shop/unused.py": "",
    "shop/protos/order.proto": (
        'syntax = "proto3";\npackage shop;\nimport "money.proto";\n'
        "message Order { int64 id = 1; Money price = 2; }\n"
    ),
    "shop/protos/money.proto": (
        'syntax = "proto3";\npackage shop;\nmessage Money { int64 cents = 1; }\n'
    ),
    "shop/certs/ca.pem": "-----BEGIN CERTIFICATE-----\n",
    "shop/certs/shop.pem": "-----BEGIN CERTIFICATE-----\n",
    "shop/certs/shop.key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n",
    "shop/data/names.csv": "1\n",
    "shop/data/raw-1.csv": "1\n",
    "secrets/a/key": SECRET,
}
ENVIRONMENT = {"PASSWORD": SECRET, "KAFKA": "broker:9092"}


def write_files(directory: Path) -> Path:
    """Writes the files and returns the pipeline file."""
    for name, text in FILES.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory / "shop/shop.yaml"
