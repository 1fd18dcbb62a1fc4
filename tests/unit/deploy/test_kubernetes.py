"""The manifests of a pipeline: access, files, settings, pods."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from project_files import ENVIRONMENT, SECRET, write_files
from ruamel.yaml import YAML

from penstock import app
from penstock.core.errors import PenstockError
from penstock.deploy.executors import Executors
from penstock.deploy.kubernetes.deployment import Deployment
from penstock.deploy.kubernetes.manifests import manifests, secret_command, to_yaml
from penstock.deploy.kubernetes.settings import run_settings
from penstock.deploy.project import Project, read_project

Objects = dict[tuple[str, str], Any]
Said = Callable[..., tuple[int, str, str]]
SMALL = """\
name: small
sources: {rows: {type: memory, rows: [{id: 1}], schema: id BIGINT}}
sinks: {out: {type: blackhole, from: rows}}
"""
STATES = {
    "lookup": """\
name: small
sources:
  rows: {type: generate, rate: 1, fields: {id: sequence}}
  names: {type: files, path: names.json, format: json, schema: id BIGINT, primary_key: [id],
          lookup: true}
transforms: {t: {type: sql, sql: "SELECT rows.id FROM rows JOIN names ON rows.id = names.id"}}
sinks: {out: {type: blackhole, from: t}}
""",
    "window": """\
name: small
sources:
  rows: {type: generate, rate: 1, fields: {t: timestamp}, watermark: {column: t, delay: 1 s}}
transforms:
  t: {type: sql, sql: "SELECT count(*) AS n FROM rows GROUP BY window(t, '1 minute')"}
sinks: {out: {type: blackhole, from: t}}
""",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    directory = tmp_path_factory.mktemp("project")
    environment = {**ENVIRONMENT, "PENSTOCK_SECRETS": str(directory / "secrets")}
    return read_project([write_files(directory)], environment)


@pytest.fixture(scope="module")
def deployment(project: Project) -> Deployment:
    return Deployment(project, "shop", "streams", "example.com/penstock:1", Executors(3, 2, 4096))


@pytest.fixture(scope="module")
def objects(deployment: Deployment) -> Objects:
    found = [each for each in YAML(typ="safe").load_all(to_yaml(deployment)) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@pytest.mark.slow
def test_all_objects_have_a_namespace_and_labels(objects: Objects) -> None:
    assert [kind for kind, _ in objects] == [
        "ServiceAccount", "Role", "RoleBinding", "ConfigMap", "ConfigMap", "Service", "StatefulSet",
    ]  # fmt: skip
    for each in objects.values():
        assert each["metadata"]["namespace"] == "streams"
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "shop"


def test_the_driver_has_access_to_pods_only(objects: Objects) -> None:
    (rule,) = objects["Role", "shop"]["rules"]
    assert rule["resources"] == ["pods"] and rule["apiGroups"] == [""]
    assert "*" not in rule["verbs"] and "update" not in rule["verbs"]
    binding = objects["RoleBinding", "shop"]
    assert binding["roleRef"]["name"] == "shop"
    account = {"kind": "ServiceAccount", "name": "shop", "namespace": "streams"}
    assert binding["subjects"] == [account]
    spec = objects["StatefulSet", "shop"]["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "shop"


def test_executors_find_the_driver_before_it_is_ready(objects: Objects) -> None:
    service, pods = objects["Service", "shop"]["spec"], objects["StatefulSet", "shop"]["spec"]
    assert service["clusterIP"] == "None" and service["publishNotReadyAddresses"]
    ports = {port["name"]: port["port"] for port in service["ports"]}
    assert ports == {"driver": 7078, "blocks": 7079, "metrics": 9090}
    assert service["selector"].items() <= pods["template"]["metadata"]["labels"].items()
    assert pods["selector"]["matchLabels"] == service["selector"] and pods["replicas"] == 1
    template = executor_pod(objects)
    assert not service["selector"].items() <= template["metadata"]["labels"].items()


def test_the_files_are_at_their_places(objects: Objects, deployment: Deployment) -> None:
    files = objects["ConfigMap", "shop-files"]["data"]
    spec = objects["StatefulSet", "shop"]["spec"]["template"]["spec"]
    volume = next(each for each in spec["volumes"] if each["name"] == "pipeline")
    config_map, secret = (next(iter(each.values())) for each in volume["projected"]["sources"])
    found = {item["path"]: files[item["key"]] for item in config_map["items"]}
    assert found == {path: text.decode() for path, text in deployment.project.files.items()}
    (key,) = secret["items"]
    assert secret["name"] == "shop" and key["path"] == "shop/certs/shop.key"
    assert f"--from-file={key['key']}=" in secret_command(deployment)


def test_the_run_of_the_driver(objects: Objects, tmp_path: Path) -> None:
    spec = objects["StatefulSet", "shop"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["args"] == [
        "run", "shop/shop.yaml", "/etc/penstock/kubernetes.yaml", "--listen", "0.0.0.0:9090",
        "--log", "json",
    ]  # fmt: skip
    assert container["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "metrics"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/health", "port": "metrics"}
    assert spec["terminationGracePeriodSeconds"] >= 120
    environment = {each["name"]: each for each in container["env"]}
    password = environment["PASSWORD"]["valueFrom"]["secretKeyRef"]
    assert password == {"name": "shop", "key": "PASSWORD"}
    assert environment["TOPIC"]["valueFrom"]["secretKeyRef"]["optional"]
    assert environment["PENSTOCK_SECRETS"]["value"] == "/etc/penstock-secrets"
    assert {each["mountPath"] for each in container["volumeMounts"]} == {
        "/pipeline", "/etc/penstock", "/etc/penstock-secrets", "/state",
        "/tmp", "/home/penstock", "/opt/penstock/cache/jars",
    }  # fmt: skip
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.slow
def test_the_driver_finds_its_files(
    objects: Objects, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of the container, in the directories that its volumes make."""
    spec = objects["StatefulSet", "shop"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    volumes = {each["name"]: each for each in spec["volumes"]}
    config_map, secret = volumes["pipeline"]["projected"]["sources"]
    texts = objects["ConfigMap", "shop-files"]["data"]
    for item in config_map["configMap"]["items"]:
        write(tmp_path / "pipeline" / item["path"], texts[item["key"]])
    for item in secret["secret"]["items"]:
        write(tmp_path / "pipeline" / item["path"], "of the Secret")
    for item in volumes["secrets"]["secret"]["items"]:
        write(tmp_path / "secrets" / item["path"], "of the Secret")
    for name, text in objects["ConfigMap", "shop-settings"]["data"].items():
        write(tmp_path / name, text)
    monkeypatch.chdir(tmp_path / "pipeline")
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], "of-the-secret")
    monkeypatch.setenv("PENSTOCK_SECRETS", str(tmp_path / "secrets"))
    words = [word.replace("/etc/penstock", str(tmp_path)) for word in container["args"]]
    files = words[1 : words.index("--listen")]
    code, out, err = said("check", *files, "--level", "static")
    assert (code, err) == (0, "") and "Shop_Orders.v2: no errors" in out


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_settings_are_those_of_a_run(objects: Objects, tmp_path: Path) -> None:
    pipeline, settings = tmp_path / "small.yaml", tmp_path / "kubernetes.yaml"
    pipeline.write_text(SMALL + "runtime: {spark: {spark.sql.ansi.enabled: false}, state: own}\n")
    settings.write_text(objects["ConfigMap", "shop-settings"]["data"]["kubernetes.yaml"])
    runtime = app.plan([pipeline, settings]).spec.runtime
    assert runtime.master == "k8s://https://kubernetes.default.svc" and runtime.java == "system"
    assert runtime.state == "/state" and runtime.spark["spark.sql.ansi.enabled"] is False
    spark = {name.removeprefix("spark."): value for name, value in runtime.spark.items()}
    assert spark["driver.host"] == "shop-0.shop.streams.svc"
    assert spark["kubernetes.driver.pod.name"] == "shop-0"
    assert (spark["driver.port"], spark["driver.blockManager.port"]) == ("7078", "7079")
    assert spark["kubernetes.container.image"] == "example.com/penstock:1"
    assert [spark[f"executor.{n}"] for n in ("instances", "cores", "memory")] == ["3", "2", "4096m"]
    assert spark["executor.memoryOverhead"] == f"{512 + 2 * 512 + 409}m"


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ("", "ReadWriteOnce"),
        ("runtime: {spark: {spark.network.crypto.enabled: true}}", "ReadWriteOnce"),
        ("runtime: {state: 's3://bucket/states'}", None),
        ("runtime: {state: own}", "ReadWriteOnce"),
        ("lookup", "ReadWriteOnce"),
        ("lookup\nruntime: {spark: {spark.network.crypto.enabled: true}}", "ReadWriteMany"),
        ("window", "ReadWriteMany"),
    ],
)
def test_the_claim_is_that_of_the_state(options: str, mode: str | None, tmp_path: Path) -> None:
    pipeline = tmp_path / "small.yaml"
    kind, _, rest = options.rpartition("\n") if "\n" in options else (options, "", "")
    pipeline.write_text(STATES.get(kind, SMALL) + (options if kind not in STATES else rest))
    (tmp_path / "names.json").write_text("{}")
    project = read_project([pipeline], {})
    deployment = Deployment(project, "shop", "streams", "e.com/penstock:1", Executors())
    (driver,) = (each["spec"] for each in manifests(deployment) if each["kind"] == "StatefulSet")
    claims = driver.get("volumeClaimTemplates", [])
    assert [claim["spec"]["accessModes"] for claim in claims] == ([[mode]] if mode else [])
    mounts = driver["template"]["spec"]["containers"][0]["volumeMounts"]
    assert ("/state" in [each["mountPath"] for each in mounts]) == (mode is not None)
    runtime = run_settings(deployment)["runtime"]
    assert runtime.get("state") == ("/state" if mode else None)
    claim = "spark.kubernetes.executor.volumes.persistentVolumeClaim.state"
    found = [
        runtime["spark"].get(f"{claim}.{name}") for name in ("mount.path", "options.claimName")
    ]
    is_shared = mode == "ReadWriteMany"
    assert found == (
        ["/state", f"{claims[0]['metadata']['name']}-shop-0"] if is_shared else [None] * 2
    )


def executor_pod(objects: Objects) -> Any:
    text = objects["ConfigMap", "shop-settings"]["data"]["executor-pod.yaml"]
    return YAML(typ="safe").load(text)


def test_executors_have_the_files_and_no_access(objects: Objects) -> None:
    spec = executor_pod(objects)["spec"]
    driver = objects["StatefulSet", "shop"]["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == driver["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert [volume["name"] for volume in spec["volumes"]] == ["pipeline", "tmp", "home"]
    (container,) = spec["containers"]
    assert "env" not in container and container["securityContext"]["readOnlyRootFilesystem"]


def test_nothing_secret_is_printed(deployment: Deployment) -> None:
    text = to_yaml(deployment)
    assert SECRET not in text and "broker:9092" not in text
    assert "kind: Secret" not in text and "&id" not in text
    command = secret_command(deployment)
    assert "--from-literal=PASSWORD=<PASSWORD>" in command and command in text
    assert "secret-a_key=<a/key>" in command


def test_a_changed_file_starts_the_driver_again(deployment: Deployment) -> None:
    def annotation(each: Deployment) -> str:
        template = manifests(each)[-1]["spec"]["template"]
        return str(template["metadata"]["annotations"]["penstock/files"])

    project = deployment.project
    changed = replace(project, files={**project.files, "shop/unused.py": b"x"})
    assert annotation(deployment) == annotation(replace(deployment))
    assert annotation(deployment) != annotation(replace(deployment, project=changed))


@pytest.mark.slow
def test_bytes_and_line_ends_are_kept(deployment: Deployment) -> None:
    files = {**deployment.project.files, "shop/score.wasm": b"\0asm", "shop/dos.sql": b"a\r\nb"}
    project = replace(deployment.project, files=files)
    (found,) = [
        each
        for each in YAML(typ="safe").load_all(to_yaml(replace(deployment, project=project)))
        if each and each["metadata"]["name"] == "shop-files"
    ]
    assert found["binaryData"] == {"shop_score.wasm": "AGFzbQ==", "shop_dos.sql": "YQ0KYg=="}


def test_too_many_files_are_an_error(deployment: Deployment) -> None:
    files = {**deployment.project.files, "shop/big.py": b"x" * 1_000_001}
    with pytest.raises(PenstockError, match=r"more than a ConfigMap") as error:
        manifests(replace(deployment, project=replace(deployment.project, files=files)))
    assert "shop/big.py" in str(error.value.hint)


def test_the_memory_of_the_driver_follows_the_heap(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL + "runtime: {memory: 3g}\n")
    deployment = Deployment(read_project([path], {}), "small", "default", "i", Executors())
    (container,) = manifests(deployment)[-1]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"memory": "6144Mi"}


@pytest.mark.slow
def test_the_command(said: Said, tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL + "runtime: {spark: {spark.executor.instances: 5}}\n")
    code, out, err = said("deploy", "k8s", path, "--namespace", "123", "--memory", "1 GiB")
    assert (code, err) == (0, "")
    assert "spark.executor.instances: '5'" in out and "spark.executor.memory: 1024m" in out
    assert "namespace: '123'" in out and "# The pipeline needs no Secret." in out
    assert "ends by itself" in out and "# Build the image penstock:" in out
    assert "# Build" not in said("deploy", "k8s", path, "--image", "e.com/penstock:1")[1]
    for words, message in [
        (("--memory", "100m"), "at least 512 MiB"),
        (("--executors", "-1"), "--executors: expected at least 0, found -1"),
        (("--name", "Small"), "Write --name small."),
        (("--image", "a b"), "--image"),
    ]:
        code, out, err = said("deploy", "k8s", path, *words)
        assert (code, out) == (2, "") and message in err


@pytest.mark.slow
def test_apply_gives_the_manifests_to_kubectl(
    said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kubectl = tmp_path / "small.yaml", tmp_path / "bin/kubectl"
    path.write_text(SMALL)
    kubectl.parent.mkdir()
    monkeypatch.setenv("PATH", str(kubectl.parent))
    code, out, err = said("deploy", "k8s", path, "--apply")
    assert (code, out) == (2, "") and "kubectl is not installed" in err
    kubectl.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nexec /bin/cat > {tmp_path}/in\n')
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
    code, out, err = said("deploy", "k8s", path, "--apply")
    assert (code, out) == (0, "") and "needs no Secret" in err
    assert (tmp_path / "words").read_text() == "apply --server-side -f -\n"
    assert len(re.findall(r"^kind: ", (tmp_path / "in").read_text(), re.MULTILINE)) == 7
    kubectl.write_text("#!/bin/sh\nexit 1\n")
    assert said("deploy", "k8s", path, "--apply")[0] == 3
