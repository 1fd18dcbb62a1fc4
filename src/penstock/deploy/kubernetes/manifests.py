"""Manifests of a deployment, with the privileges that a run needs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from penstock.deploy.executors import Executors
from penstock.deploy.image.dockerfile import DEFAULT_IMAGE
from penstock.deploy.kubernetes.deployment import (
    METRICS_PORT,
    STATE_SIZE,
    Deployment,
    Manifest,
)
from penstock.deploy.kubernetes.files import checksum, files_map, settings_map
from penstock.deploy.kubernetes.pods import DRIVER, driver_pod, executor_template
from penstock.spec.yaml.writer import to_text

POD_VERBS = ["create", "get", "list", "watch", "patch", "delete", "deletecollection"]
"""The access of Spark's driver to pods, its only access."""


def manifests(deployment: Deployment) -> list[Manifest]:
    """Returns the objects of a deployment in the order of their creation.

    The Secret that they refer to is not among them. Raises UserError if the files are too large.
    """
    files = files_map(deployment)
    settings = settings_map(deployment, executor_template(deployment))
    return [
        *_access(deployment), files, settings, _service(deployment),
        *_listening_service(deployment), _stateful_set(deployment, checksum(files, settings)),
    ]  # fmt: skip


def to_yaml(deployment: Deployment) -> str:
    """Returns the manifests as YAML. Comments name the Secret and the commands."""
    lines = (line for note in notes(deployment) for line in note.splitlines())
    comments = "".join(f"# {line}\n" for line in lines)
    return comments + "---\n" + "---\n".join(map(to_text, manifests(deployment)))


def notes(deployment: Deployment) -> Iterator[str]:
    """Yields the preparations that the manifests do not make, and the Secret's command."""
    project = deployment.project
    yield _size(deployment.executors)
    if deployment.image == DEFAULT_IMAGE:
        yield f"Build the image {DEFAULT_IMAGE} for the nodes (penstock deploy image), or name one."
    if project.plan.bounded:
        yield "The pipeline ends by itself. Kubernetes then starts it again, for new input."
    for each in deployment.open_ports:
        host = f"{deployment.listening_service}.{deployment.namespace}.svc"
        yield f"Other pods reach {each.label} at {host}:{each.port} ({each.protocol})."
    optional = [name for name, required in project.variables.items() if not required]
    if not deployment.needs_secret:
        yield "The pipeline needs no Secret."
        return
    yield "Create the Secret first, with values in place of <...>:"
    yield secret_command(deployment)
    if optional:
        yield f"The file has defaults for {', '.join(optional)}."


def _size(executors: Executors) -> str:
    """Returns the cores and the heap of the pods that run tasks, with the options that set them."""
    cores = "1 core" if executors.cores == 1 else f"{executors.cores} cores"
    pods = {0: "The driver runs the tasks, with", 1: "1 executor has"}
    subject = pods.get(executors.number, f"{executors.number} executors each have")
    options = "--executors, --cores and --memory set other sizes"
    return f"{subject} {cores} and a heap of {executors.memory_mib} MiB: {options}."


def secret_command(deployment: Deployment) -> str:
    """Returns the command that creates the Secret, with placeholders for its values."""
    project = deployment.project
    words = ["kubectl", "create", "secret", "generic", deployment.name]
    words += ["--namespace", deployment.namespace]
    words += [f"--from-literal={name}=<{name}>" for name in project.variables]
    files = deployment.secret_file_keys.items()
    words += [f"--from-file={key}={project.root / path}" for path, key in files]
    words += [f"--from-literal={key}=<{name}>" for name, key in deployment.secret_keys.items()]
    return shlex.join(words)


def _access(deployment: Deployment) -> list[Manifest]:
    """Returns the account of the driver and its role: access to pods of the namespace.

    Without executors there is no role, and the account has no token. It remains as the identity of
    the pod, to which clouds bind permissions.
    """
    metadata, name = deployment.metadata(), deployment.name
    group = "rbac.authorization.k8s.io"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    if deployment.is_one_pod:
        return [{**account, "automountServiceAccountToken": False}]
    return [
        account,
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": POD_VERBS}],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": name, "namespace": deployment.namespace}
            ],
        },
    ]


def _service(deployment: Deployment) -> Manifest:
    """Returns the headless Service, which a StatefulSet requires.

    Executors and Prometheus find the driver before it is ready.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": deployment.metadata(),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": deployment.selector(DRIVER),
            "ports": [{"name": name, "port": port} for name, port in deployment.ports.items()],
        },
    }


def _listening_service(deployment: Deployment) -> list[Manifest]:
    """Returns the Service of the sources and sinks that listen; none without these.

    It has an address of the cluster, and sends nothing to a driver that is not ready.
    """
    if not deployment.open_ports:
        return []
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": deployment.metadata(deployment.listening_service),
            "spec": {
                "type": "ClusterIP",
                "selector": deployment.selector(DRIVER),
                "ports": [
                    {
                        "name": each.name, "port": each.port, "targetPort": each.name,
                        "protocol": each.protocol,
                    }
                    for each in deployment.open_ports
                ],
            },
        }
    ]  # fmt: skip


def _stateful_set(deployment: Deployment, files: str) -> Manifest:
    """Returns the StatefulSet of one driver, which starts again when a file changes."""
    labels = {**deployment.labels, **deployment.selector(DRIVER)}
    annotations = {
        "penstock/files": files,
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(METRICS_PORT),
        "prometheus.io/path": deployment.project.plan.spec.runtime.endpoints.metrics,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": deployment.metadata(),
        "spec": {
            "replicas": 1,
            "serviceName": deployment.name,
            "selector": {"matchLabels": deployment.selector(DRIVER)},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": driver_pod(deployment),
            },
            **_state_claim(deployment),
        },
    }


def _state_claim(deployment: Deployment) -> Manifest:
    """Returns the claim of the state; none of a state in an object store."""
    if not deployment.claims_state:
        return {}
    mode = "ReadWriteMany" if deployment.shares_state else "ReadWriteOnce"
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": STATE_SIZE}}}
    metadata = {"name": "state", "labels": deployment.labels}
    return {"volumeClaimTemplates": [{"metadata": metadata, "spec": spec}]}
