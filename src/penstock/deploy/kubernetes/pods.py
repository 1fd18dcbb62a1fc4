"""Pods of a deployment: that of the driver, and the template of those of executors."""

from __future__ import annotations

from penstock.deploy.executors import driver_heap_mib
from penstock.deploy.kubernetes.deployment import (
    GRACE_SECONDS,
    METRICS_PORT,
    PROJECT,
    SECRETS,
    SETTINGS,
    SETTINGS_FILE,
    STATE,
    USER,
    Deployment,
    Manifest,
)
from penstock.spec.documents.secrets import DIRECTORY

DRIVER, EXECUTOR = "driver", "executor"
_DRIVER_MIB = 2048
"""The memory of a driver whose heap is automatic: half of it is the heap."""
_POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
_PROJECT_MOUNT: Manifest = {"name": "pipeline", "mountPath": PROJECT, "readOnly": True}
_CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
_WRITTEN = {"tmp": "/tmp", "home": "/home/penstock"}
"""The directories of the image that every process writes, by the name of their volume.

Executors have the directories of Spark in a volume of Spark beside them.
"""
_JARS, _STATES = {"jars": "/opt/penstock/cache/jars"}, {"states": "/opt/penstock/cache/state"}
"""The directories of the cache that a driver writes. The image has the class cache beside them."""


def driver_pod(deployment: Deployment) -> Manifest:
    """Returns the specification of the pod of the driver."""
    without_token = {"automountServiceAccountToken": False} if deployment.is_one_pod else {}
    return {
        "serviceAccountName": deployment.name,
        **without_token,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {**_POD_SECURITY},
        "containers": [_driver_container(deployment)],
        "volumes": [
            _project_volume(deployment),
            {"name": "settings", "configMap": {"name": deployment.settings_map}},
            *_secrets_volume(deployment),
            *_empty_volumes(_written_by_driver(deployment)),
        ],
    }


def executor_template(deployment: Deployment) -> Manifest:
    """Returns the template of the pods of executors. They have no access to the API."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {**deployment.labels, **deployment.selector(EXECUTOR)}},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {**_POD_SECURITY},
            "containers": [
                {
                    "name": EXECUTOR,
                    "securityContext": {**_CONTAINER_SECURITY},
                    "volumeMounts": [{**_PROJECT_MOUNT}, *_mounts(_WRITTEN)],
                }
            ],
            "volumes": [_project_volume(deployment), *_empty_volumes(_WRITTEN)],
        },
    }


def _driver_container(deployment: Deployment) -> Manifest:
    mounts: list[Manifest] = [
        {**_PROJECT_MOUNT},
        {"name": "settings", "mountPath": SETTINGS, "readOnly": True},
    ]
    if deployment.secret_keys:
        mounts.append({"name": "secrets", "mountPath": SECRETS, "readOnly": True})
    if deployment.claims_state:
        mounts.append({"name": "state", "mountPath": STATE})
    mounts += _mounts(_written_by_driver(deployment))
    return {
        "name": DRIVER,
        "image": deployment.image,
        "args": [
            "run", *deployment.project.pipeline_files, f"{SETTINGS}/{SETTINGS_FILE}",
            "--listen", f"0.0.0.0:{METRICS_PORT}", "--log", "json",
        ],
        "workingDir": PROJECT,
        "env": _environment(deployment),
        "ports": [
            *({"name": name, "containerPort": port} for name, port in deployment.ports.items()),
            *(
                {"name": each.name, "containerPort": each.port, "protocol": each.protocol}
                for each in deployment.open_ports
            ),
        ],
        "resources": _resources(deployment),
        "securityContext": {**_CONTAINER_SECURITY},
        **_probes(deployment),
        "volumeMounts": mounts,
    }  # fmt: skip


def _environment(deployment: Deployment) -> list[Manifest]:
    """Returns the variables of the files, from the Secret. One with a default may be missing."""
    directory = [{"name": DIRECTORY, "value": SECRETS}] if deployment.secret_keys else []
    return [
        *directory,
        *(_variable(deployment, *each) for each in deployment.project.variables.items()),
    ]


def _variable(deployment: Deployment, name: str, required: bool) -> Manifest:
    reference = {"name": deployment.name, "key": name, **({} if required else {"optional": True})}
    return {"name": name, "valueFrom": {"secretKeyRef": reference}}


def _probes(deployment: Deployment) -> Manifest:
    endpoints = deployment.project.plan.spec.runtime.endpoints

    def probe(path: str, **options: int) -> Manifest:
        return {"httpGet": {"path": path, "port": "metrics"}, **options}

    return {
        "startupProbe": probe(endpoints.health, periodSeconds=5, failureThreshold=60),
        "readinessProbe": probe(endpoints.ready, periodSeconds=10, timeoutSeconds=5),
        "livenessProbe": probe(
            endpoints.health, periodSeconds=20, timeoutSeconds=10, failureThreshold=6
        ),
    }


def _resources(deployment: Deployment) -> Manifest:
    """Returns the cores and the memory of the driver."""
    cores = deployment.executors.cores if deployment.is_one_pod else 1
    memory = f"{_driver_mib(deployment)}Mi"
    return {"requests": {"cpu": f"{cores}", "memory": memory}, "limits": {"memory": memory}}


def _driver_mib(deployment: Deployment) -> int:
    """Returns the memory of the driver: its heap, and the same for Java and Python beside it.

    Without executors the Python workers of the tasks are beside it as well.
    """
    runtime = deployment.project.plan.spec.runtime
    if deployment.is_one_pod:
        return deployment.executors.pod_mib(runtime)
    return max(_DRIVER_MIB, 2 * (driver_heap_mib(runtime) or 0))


def _project_volume(deployment: Deployment) -> Manifest:
    """Returns the volume of the files of the pipeline, with those that are secrets."""
    sources = [_projection("configMap", deployment.files_map, deployment.file_keys)]
    if deployment.secret_file_keys:
        sources.append(_projection("secret", deployment.name, deployment.secret_file_keys))
    return {"name": "pipeline", "projected": {"sources": sources}}


def _secrets_volume(deployment: Deployment) -> list[Manifest]:
    """Returns the volume of the directory of secrets; none without such secrets."""
    if not deployment.secret_keys:
        return []
    secret = {"secretName": deployment.name, "items": _items(deployment.secret_keys)}
    return [{"name": "secrets", "secret": secret}]


def _written_by_driver(deployment: Deployment) -> dict[str, str]:
    """Returns the directories that the driver writes, without that of a claim of the state.

    A state in an object store has a copy in the cache.
    """
    return {**_WRITTEN, **_JARS, **({} if deployment.claims_state else _STATES)}


def _mounts(directories: dict[str, str]) -> list[Manifest]:
    return [{"name": name, "mountPath": path} for name, path in directories.items()]


def _empty_volumes(directories: dict[str, str]) -> list[Manifest]:
    return [{"name": name, "emptyDir": {}} for name in directories]


def _projection(kind: str, name: str, keys: dict[str, str]) -> Manifest:
    return {kind: {"name": name, "items": _items(keys)}}


def _items(keys: dict[str, str]) -> list[Manifest]:
    return [{"key": key, "path": path} for path, key in keys.items()]
