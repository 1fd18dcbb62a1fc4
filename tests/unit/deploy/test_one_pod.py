"""Deployment in one pod: the driver runs the tasks, without executors and without access."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from penstock import app
from penstock.core.errors import PenstockError
from penstock.deploy.executors import Executors, no_executors
from penstock.deploy.kubernetes.deployment import Deployment
from penstock.deploy.kubernetes.manifests import manifests
from penstock.deploy.project import read_project
from penstock.spec.runtime_models import Runtime

Said = Callable[..., tuple[int, str, str]]
Objects = dict[tuple[str, str], Any]
PIPELINE = """\
name: edge
sources:
  in: {type: http, listen: "0.0.0.0:7078", schema: "k STRING, at TIMESTAMP",
       watermark: {column: at, delay: 1s}}
transforms:
  counts: {type: sql, sql: "SELECT count(*) AS n FROM in GROUP BY window(at, '1 minute')"}
sinks:
  out: {type: http, from: counts, url: "http://out", headers: {key: "${KEY}"}}
"""
"""Pipeline whose executors would need a shared state, for its window."""


def printed(said: Said, path: Path, *words: object) -> Objects:
    """Returns the objects that the command prints for one pod."""
    code, out, err = said("deploy", "k8s", path, "--executors", 0, *words)
    assert (code, err) == (0, "")
    found = [each for each in YAML(typ="safe").load_all(out) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def settings(objects: Objects) -> str:
    """Returns the file of settings, the only one of its config map."""
    ((name, text),) = objects["ConfigMap", "edge-settings"]["data"].items()
    assert name == "kubernetes.yaml"
    return str(text)


def planned(directory: Path, objects: Objects) -> Runtime:
    """Returns the runtime of the pipeline with the settings of the objects."""
    (directory / "kubernetes.yaml").write_text(settings(objects))
    return app.plan([directory / "edge.yaml", directory / "kubernetes.yaml"]).spec.runtime


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEY", "of-the-test")
    path = tmp_path / "edge.yaml"
    path.write_text(PIPELINE)
    return path


@pytest.mark.slow
def test_one_pod_has_no_access_and_no_ports_of_executors(said: Said, path: Path) -> None:
    objects = printed(said, path)
    assert list(objects) == [
        ("ServiceAccount", "edge"), ("ConfigMap", "edge-files"), ("ConfigMap", "edge-settings"),
        ("Service", "edge"), ("Service", "edge-listen"), ("StatefulSet", "edge"),
    ]  # fmt: skip
    pod = objects["StatefulSet", "edge"]["spec"]["template"]["spec"]
    assert objects["ServiceAccount", "edge"]["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is False and pod["serviceAccountName"] == "edge"
    assert objects["Service", "edge"]["spec"]["ports"] == [{"name": "metrics", "port": 9090}]
    (container,) = pod["containers"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert ports == {"metrics": 9090, "tcp-7078": 7078}
    assert container["env"][0]["valueFrom"]["secretKeyRef"] == {"name": "edge", "key": "KEY"}
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()


@pytest.mark.slow
def test_the_state_of_one_pod_is_its_own(said: Said, path: Path) -> None:
    objects = printed(said, path)
    (claim,) = objects["StatefulSet", "edge"]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert "k8s" not in settings(objects) and "executor" not in settings(objects)
    assert planned(path.parent, objects).state == "/state"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "words", "cores", "heap", "memory"),
    [
        ("", (), 1, 2048, 2048 + 512 + 512 + 204 + 512),
        ("", ("--cores", 2, "--memory", "1g"), 2, 1024, 1024 + 512 + 2 * 512 + 102 + 512),
        ("master: 'local[4]', memory: 1g", (), 4, 1024, 1024 + 512 + 4 * 512 + 102 + 512),
        ("master: 'local[4,2]', memory: 1g", ("--cores", 1), 1, 1024, 1024 + 1024 + 102 + 512),
        ("master: 'spark://node:7077', memory: 512 MB", (), 1, 489, 489 + 1024 + 48 + 512),
        ("spark: {spark.driver.memory: 3g}", (), 1, 3072, 3072 + 1024 + 307 + 512),
        ("spark: {spark.driver.memory: 3g}", ("--memory", "1g"), 1, 1024, 1024 + 1126 + 512),
        ("spark: {spark.executor.memoryOverhead: 3g}", (), 1, 2048, 2048 + 3072 + 512),
        ("spark: {spark.executor.memoryOverhead: 700}", (), 1, 2048, 2048 + 700 + 512),
    ],
)
def test_the_size_of_one_pod(
    own: str, words: tuple[Any], cores: int, heap: int, memory: int, said: Said, path: Path
) -> None:
    path.write_text(PIPELINE + f"runtime: {{{own}}}\n")
    objects = printed(said, path, *words)
    (container,) = objects["StatefulSet", "edge"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": f"{cores}", "memory": f"{memory}Mi"},
        "limits": {"memory": f"{memory}Mi"},
    }
    runtime = planned(path.parent, objects)
    assert (runtime.master, runtime.java) == (f"local[{cores}]", "system")
    assert runtime.spark.get("spark.driver.memory", runtime.memory) == f"{heap}m"


@pytest.mark.slow
@pytest.mark.parametrize(("words", "cores"), [((), "1 core and"), (("--cores", 3), "3 cores and")])
def test_a_comment_has_the_size_of_one_pod(
    words: tuple[Any], cores: str, said: Said, path: Path
) -> None:
    path.write_text(PIPELINE + "runtime: {master: 'local[*]', memory: 1g}\n")
    first = said("deploy", "k8s", path, "--executors", 0, *words)[1].splitlines()[0]
    assert first == (
        f"# The driver runs the tasks, with {cores} a heap of 1024 MiB: "
        "--executors, --cores and --memory set other sizes."
    )


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("spark.driver.memory", "much", "a size such as"),
        ("spark.driver.memory", "100m", "at least 512 MB, found 100m"),
        ("spark.executor.memoryOverhead", "much", "a size such as"),
    ],
)
def test_an_invalid_size_in_the_file_is_an_error(option: str, value: str, expected: str) -> None:
    runtime = Runtime(spark={option: value})
    with pytest.raises(PenstockError, match=f"{option}: expected {expected}"):
        no_executors(runtime).pod_mib(runtime)


@pytest.mark.slow
@pytest.mark.parametrize("master", ["local[2]", "spark://node:7077"])
def test_the_state_of_a_window_in_an_object_store(said: Said, path: Path, master: str) -> None:
    source = "{type: kafka, brokers: b, topic: t, format: json, schema: at TIMESTAMP,\n"
    text = PIPELINE.replace(PIPELINE.split("in: ")[1].split("\n")[0], source.rstrip())
    path.write_text(text + f"runtime: {{master: '{master}', state: 's3://bucket/states'}}\n")
    stateful_set = printed(said, path)["StatefulSet", "edge"]["spec"]
    assert "volumeClaimTemplates" not in stateful_set
    (container,) = stateful_set["template"]["spec"]["containers"]
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert mounts["/opt/penstock/cache/state"] == "states"
    assert {"name": "states", "emptyDir": {}} in stateful_set["template"]["spec"]["volumes"]
    assert said("deploy", "image", path)[0] == 0
    code, _, err = said("deploy", "k8s", path)
    assert code == 2 and "error[object-store-state]" in err


@pytest.mark.slow
def test_a_path_of_one_pod_is_in_a_volume(said: Said, path: Path) -> None:
    out = "out: {type: files, path: rows, format: json, from"
    path.write_text(PIPELINE.replace("out: {type: http, from", out).split(", url")[0] + "}\n")
    code, _, err = said("deploy", "k8s", path, "--executors", 0)
    assert code == 0 and "warning[local-path]" in err and "a path in a volume of the pod" in err


def test_the_metrics_port_remains_reserved(path: Path) -> None:
    path.write_text(PIPELINE.replace("7078", "9090"))
    project = read_project([path], {"KEY": "k"}, local=True)
    with pytest.raises(PenstockError, match="needs the port 9090 itself") as error:
        manifests(Deployment(project, "edge", "default", "e.com/p:1", Executors(0)))
    assert error.value.hint == "Choose another port than 9090."
