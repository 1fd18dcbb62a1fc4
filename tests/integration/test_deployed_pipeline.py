"""A pipeline by the manifests of `penstock deploy k8s`, with a stand-in for Kubernetes."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from command_line import CommandLine
from penstock.core.cache import cache_directory
from servers.kubernetes import TOKEN, Kubernetes, image_environment, pod_command
from servers.process import Process
from servers.read_only import read_only, written_by
from servers.server import free_port

pytestmark = pytest.mark.spark

PIPELINE = """\
name: totals
sources:
  in: {type: files, path: DIRECTORY/in.json, format: json, schema: "k STRING, n INT", max_size: 4KB}
transforms:
  totals: {type: sql, sql: "SELECT k, count(*) AS n, sum(n) AS total FROM in GROUP BY k"}
sinks:
  out: {type: files, from: totals, path: DIRECTORY/home/out, format: json}
"""
"""Pipeline whose executors write files to the only directory of a volume that a test can read."""
WINDOWS = """\
name: totals
sources:
  in: {type: files, path: DIRECTORY/in.json, format: json, schema: "k STRING, at TIMESTAMP",
       watermark: {column: at, delay: 1s}}
transforms:
  totals:
    type: sql
    sql: SELECT window.start AS at, k, count(*) AS n FROM in GROUP BY window(at, '1 minute'), k
sinks:
  out: {type: files, from: totals, path: DIRECTORY/state/out, format: json}
"""
"""Pipeline whose executors would need a shared state."""
ROWS = 300
BAD = range(0, ROWS, 30)
PATHS = {
    "/pipeline": "pipeline", "/etc/penstock": "penstock", "/state": "state",
    "/home/penstock": "home", "/opt/penstock/cache": "cache",
}  # fmt: skip
"""The directories of a container, and their places in the directory of a test."""


class Deployment:
    """The objects of manifests, whose paths and ports are those of this machine."""

    def __init__(self, directory: Path, manifests: str) -> None:
        for name in PATHS.values():
            (directory / name).mkdir()
        paths = rf"(?<![\w/])({'|'.join(PATHS)})(?![\w-])"
        manifests = re.sub(paths, lambda found: f"{directory / PATHS[found[1]]}", manifests)
        for port in (7078, 7079, 9090):
            manifests = manifests.replace(f"{port}", f"{free_port()}")
        self.objects = {(each["kind"], each["metadata"]["name"]): each
                        for each in YAML(typ="safe").load_all(manifests)}  # fmt: skip

    def pod(self) -> dict[str, Any]:
        """Returns the specification of the pod of the driver."""
        return dict(self.objects["StatefulSet", "totals"]["spec"]["template"]["spec"])

    def container(self) -> dict[str, Any]:
        """Returns the container of the driver."""
        (container,) = self.pod()["containers"]
        return dict(container)

    def write(self, name: str, directory: Path, *replaced: str) -> None:
        """Writes the files of a config map."""
        for file, text in self.objects["ConfigMap", name]["data"].items():
            (directory / file).write_text(text.replace(*replaced) if replaced else text)


def deploy(directory: Path, pipeline: str, executors: int) -> Deployment:
    """Returns the deployment of a pipeline, whose data are in the directory."""
    (directory / "totals.yaml").write_text(pipeline.replace("DIRECTORY", str(directory)))
    command = ["deploy", "k8s", "totals.yaml", "--image", "penstock:made-up"]
    done = CommandLine()(directory, *command, "--executors", f"{executors}", "--memory", "512m")
    assert done.returncode == 0, done.stderr
    return Deployment(directory, done.stdout)


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return deploy(tmp_path, PIPELINE, 1)


@pytest.fixture
def kubernetes(deployment: Deployment) -> Iterator[Kubernetes]:
    hosts = ["kubernetes.default.svc", "totals-0.totals.default.svc"]
    with Kubernetes(deployment.objects["Role", "totals"]["rules"], hosts) as server:
        yield server


def test_a_deployed_pipeline(
    tmp_path: Path, deployment: Deployment, kubernetes: Kubernetes
) -> None:
    lines = [json.dumps({"k": f"k{number % 3}", "n": number}) for number in range(ROWS)]
    for number in BAD:
        lines[number] = "{damaged"
    (tmp_path / "in.json").write_text("\n".join(lines) + "\n")
    deployment.write("totals-files", tmp_path / "pipeline")
    server = "https://kubernetes.default.svc", f"http://kubernetes.default.svc:{kubernetes.port}"
    deployment.write("totals-settings", tmp_path / "penstock", *server)
    (tmp_path / "token").write_text(TOKEN)
    labels = deployment.objects["StatefulSet", "totals"]["spec"]["template"]["metadata"]["labels"]
    pod = {"metadata": {"name": "totals-0", "labels": labels}, "spec": {"containers": []}}
    kubernetes.add("default", {"apiVersion": "v1", "kind": "Pod", **pod})
    command = [sys.executable, "-m", "penstock", *deployment.container()["args"]]
    driver = Process(
        pod_command(kubernetes.hosts, "totals-0", command), tmp_path / "pipeline" / "log",
        {**kubernetes.environment(), "KUBERNETES_AUTH_SERVICEACCOUNT_TOKEN": f"{tmp_path}/token"},
    )  # fmt: skip
    try:
        code = driver.wait(240)
    finally:
        driver.kill()
    log = (tmp_path / "pipeline" / "log").read_text()
    assert code == 0, log
    assert kubernetes.denied() == []
    rows = written(tmp_path / "home")
    good = [number for number in range(ROWS) if number not in BAD]
    counts = Counter(f"k{number % 3}" for number in good)
    totals = {key: sum(n for n in good if f"k{n % 3}" == key) for key in counts}
    assert {row["k"]: row["n"] for row in rows} == counts
    assert {row["k"]: row["total"] for row in rows} == totals
    letters = (tmp_path / "state" / "totals" / "dead_letters").glob("**/*.arrow")
    assert list(letters)
    assert [each["metadata"]["name"] for each in kubernetes.pods("default")] == ["totals-0"]


def test_one_pod_runs_a_window_with_a_read_only_root(tmp_path: Path) -> None:
    """The image has the class cache. The rows are written to the volume of the state."""
    deployment = deploy(tmp_path, WINDOWS, 0)
    minutes = [f"2026-01-01T00:0{number % 3}:00Z" for number in range(ROWS)]
    lines = [json.dumps({"k": "a", "at": minute}) for minute in minutes]
    (tmp_path / "in.json").write_text("\n".join(lines) + "\n")
    deployment.write("totals-files", tmp_path / "pipeline")
    deployment.write("totals-settings", tmp_path / "penstock")
    entry = [sys.executable, "-m", "penstock.deploy.image.entrypoint"]
    log = tmp_path / "pipeline" / "log"
    (tmp_path / "cache" / "classes").symlink_to(cache_directory() / "classes")
    command = read_only(
        [*entry, *deployment.container()["args"]],
        [str(tmp_path)],
        [*written_by(deployment.pod(), claims=["state"])],
    )
    image = {"HOME": f"{tmp_path}/home", "PENSTOCK_CACHE": f"{tmp_path}/cache"}
    driver = Process(command, log, {**image_environment(), **image})
    try:
        code = driver.wait(240)
    finally:
        driver.kill()
    assert code == 0, log.read_text()
    assert Counter(row["at"] for row in written(tmp_path / "state")) == Counter(set(minutes))
    assert {row["n"] for row in written(tmp_path / "state")} == {ROWS // 3}
    assert list((tmp_path / "state" / "totals").glob("checkpoints/totals/state/0/0/*"))


def written(directory: Path) -> list[dict[str, Any]]:
    """Returns the rows of the sink."""
    return [
        json.loads(line) for path in (directory / "out").glob("*.jsonl") for line in path.open()
    ]
