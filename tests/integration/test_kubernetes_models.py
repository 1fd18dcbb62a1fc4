"""The manifests of a deployment have no field that Kubernetes does not know.

The models of Kubernetes are in the jars of Spark: a field that a model lacks is an additional
property.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from penstock.deploy.executors import Executors
from penstock.deploy.kubernetes.deployment import Deployment
from penstock.deploy.kubernetes.manifests import to_yaml
from penstock.deploy.project import read_project
from penstock.engine.catalyst.java_functions import compile_java

pytestmark = pytest.mark.spark

PIPELINE = """\
name: shop
sources:
  orders: {type: kafka, brokers: "${KAFKA:-broker}", topic: t, format: json, schema: id BIGINT,
           tls: {ca: ca.pem, certificate: ca.pem, key: shop.key}}
  in: {type: http, listen: "0.0.0.0:8080", schema: id BIGINT}
sinks:
  rest: {type: blackhole, from: in}
  out: {type: http, from: orders, url: "http://out", headers: {k: "${secret:file/key}"}}
"""
UNKNOWN_FIELDS = """
public Object apply(Object text, Object unused) {
  try {
    java.util.List found = new java.util.ArrayList();
    Object model = new io.fabric8.kubernetes.client.utils.KubernetesSerialization()
        .unmarshal((String) text);
    walk(model, model.getClass().getSimpleName(), found);
    return found;
  } catch (Exception error) {
    throw new RuntimeException(error);
  }
}

private static void walk(Object value, String place, java.util.List found) throws Exception {
  if (value instanceof java.util.Map) {
    walk(((java.util.Map) value).values(), place, found);
  } else if (value instanceof java.util.Collection) {
    java.util.Iterator items = ((java.util.Collection) value).iterator();
    while (items.hasNext()) {
      walk(items.next(), place, found);
    }
  } else if (value != null && value.getClass().getName().startsWith("io.fabric8.kubernetes.api")) {
    java.lang.reflect.Method[] methods = value.getClass().getMethods();
    for (int i = 0; i < methods.length; i++) {
      String name = methods[i].getName();
      if (!name.startsWith("get") || methods[i].getParameterCount() > 0) {
        continue;
      }
      Object inner = methods[i].invoke(value, new Object[0]);
      if (!name.equals("getAdditionalProperties")) {
        walk(inner, place + "." + name.substring(3), found);
      } else if (!((java.util.Map) inner).isEmpty()) {
        found.add(place + " " + ((java.util.Map) inner).keySet());
      }
    }
  }
}
"""


@pytest.fixture
def unknown_fields(penstock_spark: SparkSession) -> Any:
    compiled = compile_java(penstock_spark.sparkContext._gateway, UNKNOWN_FIELDS)
    return lambda text: list(compiled.apply(text, None))


def write_text(directory: Path, executors: Executors) -> str:
    """Returns the manifests of the pipeline, whose files it writes."""
    for name, text in {
        "shop.yaml": PIPELINE, "ca.pem": "certificate", "shop.key": "key", "key": "of-the-shop",
    }.items():  # fmt: skip
        (directory / name).write_text(text)
    environment = {"PENSTOCK_SECRETS": str(directory)}
    project = read_project([directory / "shop.yaml"], environment)
    return to_yaml(Deployment(project, "shop", "default", "penstock:1", executors))


def test_all_fields_of_one_pod_are_known(unknown_fields: Any, tmp_path: Path) -> None:
    documents = write_text(tmp_path, Executors(0)).split("---\n")[1:]
    assert len(documents) == 6
    for document in documents:
        assert unknown_fields(document) == [], document


def test_all_fields_are_known(unknown_fields: Any, tmp_path: Path) -> None:
    documents = write_text(tmp_path, Executors()).split("---\n")[1:]
    settings = next(each for each in documents if "name: shop-settings" in each)
    documents.append(YAML(typ="safe").load(settings)["data"]["executor-pod.yaml"])
    assert len(documents) == 9
    for document in documents:
        assert unknown_fields(document) == [], document
    wrong = documents[7].replace("periodSeconds", "periodSecond")
    (found, *_) = unknown_fields(wrong)
    assert "Probe [periodSecond]" in found
    assert unknown_fields(documents[7].replace("securityContext", "securityContxt"))
