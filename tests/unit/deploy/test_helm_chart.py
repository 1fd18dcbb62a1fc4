"""The Helm chart makes the objects of `penstock deploy k8s`. Needs the program `helm`."""

from __future__ import annotations

import json
import shutil
import subprocess
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

CHART = Path(__file__).parents[3] / "deploy/helm/penstock"
HELM = shutil.which("helm")


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


@pytest.mark.skipif(HELM is None, reason="helm is not installed")
def test_the_chart_has_the_same_objects(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "PENSTOCK_SECRETS": str(tmp_path / "secrets")}
    project = read_project([write_files(tmp_path)], environment)
    deployment = Deployment(project, "shop", "streams", "e.com/penstock:1", Executors(3, 2, 4096))
    values = {
        "image": deployment.image,
        "pipeline": project.pipeline_files,
        "files": {path: content.decode() for path, content in project.files.items()},
        "variables": [name for name, required in project.variables.items() if required],
        "optionalVariables": [name for name, required in project.variables.items() if not required],
        "secretFiles": deployment.secret_file_keys,
        "secrets": deployment.secret_keys,
        "executors": {
            "number": 3, "cores": 2, "memory": "4096m",
            "memoryOverhead": f"{deployment.executors.overhead_mib}m",
        },
    }  # fmt: skip
    values["state"] = {"shared": deployment.shares_state}
    (tmp_path / "values.json").write_text(json.dumps(values))
    command = [str(HELM), "template", "shop", str(CHART), "--namespace", "streams"]
    command += ["--values", str(tmp_path / "values.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert objects(done.stdout) == objects(to_yaml(deployment))


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
