"""The Helm chart makes the objects of `penstock deploy k8s`, by the libraries of Helm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from project_files import ENVIRONMENT, write_files
from ruamel.yaml import YAML

from penstock.core.version import __version__
from penstock.deploy.executors import Executors
from penstock.deploy.image.dockerfile import DEFAULT_IMAGE
from penstock.deploy.kubernetes.deployment import Deployment
from penstock.deploy.kubernetes.manifests import to_yaml
from penstock.deploy.project import read_project
from servers.packages import python_package

CHART = Path(__file__).parents[3] / "deploy/helm/penstock"
PROGRAM = """
import json, sys
import helm_python as helm

path, name, namespace = sys.argv[1:]
values = json.load(sys.stdin)
with helm.Chart.load(path) as chart:
    rendered = chart.render(values, name=name, namespace=namespace)
print(json.dumps([helm.lint(path, values, namespace=namespace), rendered]))
"""
"""Helm 4, as a process of its own: it is a library of Go with threads."""
INFORMATION = 1
"""The severity of a message of Helm that is not a warning."""


def objects(text: str) -> dict[tuple[str, str], Any]:
    """Returns the objects by kind and name, without the values in which both may differ."""
    text = text.replace("managed-by: Helm", "managed-by: penstock")
    found = {}
    for each in YAML(typ="safe").load_all(text):
        if each:
            found[each["kind"], each["metadata"]["name"]] = each
            if each["kind"] == "StatefulSet":
                each["spec"]["template"]["metadata"]["annotations"].pop("penstock/files")
            if each["metadata"]["name"].endswith("-settings"):
                data = each["data"].items()
                each["data"] = {name: YAML(typ="safe").load(content) for name, content in data}
    return found


@pytest.mark.parametrize("number", [3, 0])
def test_the_chart_has_the_same_objects(number: int, tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "PENSTOCK_SECRETS": str(tmp_path / "secrets")}
    project = read_project([write_files(tmp_path)], environment)
    executors = Executors(number, 2, 4096)
    deployment = Deployment(project, "shop", "streams", "e.com/penstock:1", executors)
    values = {
        "image": deployment.image,
        "pipeline": project.pipeline_files,
        "files": {path: content.decode() for path, content in project.files.items()},
        "variables": [name for name, required in project.variables.items() if required],
        "optionalVariables": [name for name, required in project.variables.items() if not required],
        "secretFiles": deployment.secret_file_keys,
        "secrets": deployment.secret_keys,
        "executors": {
            "number": number, "cores": 2, "memory": "4096m",
            "memoryOverhead": f"{executors.overhead_mib}m",
        },
        "state": {"shared": deployment.shares_state},
    }  # fmt: skip
    lint, rendered = run_helm(values)
    assert [each for each in lint["messages"] if each["severity"] > INFORMATION] == []
    assert objects("\n---\n".join(rendered.values())) == objects(to_yaml(deployment))


def test_one_pod_has_the_memory_of_its_heap_and_no_shared_claim() -> None:
    values: dict[str, Any] = {"files": {"pipeline.yaml": "name: shop"}}
    values["executors"] = {"number": 0, "memory": "2g"}
    _, rendered = run_helm(values)
    driver = objects("\n---\n".join(rendered.values()))["StatefulSet", "shop"]["spec"]
    (container,) = driver["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": f"{2048 + 1228 + 512}Mi"}
    assert driver["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOnce"]


def run_helm(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the report of `helm lint`, and the texts that the templates make of values."""
    command = [sys.executable, "-c", PROGRAM, str(CHART), "shop", "streams"]
    package = python_package("helm-python-sdk", "0.2.2")
    done = subprocess.run(
        command, input=json.dumps(values), capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(package)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lint, rendered = json.loads(done.stdout)
    return lint, rendered


def test_the_versions_of_the_chart() -> None:
    chart, values = (
        YAML(typ="safe").load((CHART / name).read_text()) for name in ("Chart.yaml", "values.yaml")
    )
    assert chart["version"] == chart["appVersion"] == __version__
    defaults, executors = Executors(), values["executors"]
    assert values["image"] == DEFAULT_IMAGE
    assert executors["number"] == defaults.number and executors["cores"] == defaults.cores
    assert executors["memory"] == f"{defaults.memory_mib}m"
    assert executors["memoryOverhead"] == f"{defaults.overhead_mib}m"
