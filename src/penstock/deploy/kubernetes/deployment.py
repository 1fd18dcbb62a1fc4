"""Deployment of a pipeline on Kubernetes: its options, paths and ports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.deploy.executors import Executors
from penstock.deploy.kubernetes.listeners import Listener, listeners, open_ports
from penstock.deploy.kubernetes.names import keys
from penstock.deploy.project import Project
from penstock.plan.executor_state import shared_state

DRIVER_PORT, BLOCK_PORT, METRICS_PORT = 7078, 7079, 9090
PROJECT, SETTINGS, STATE, SECRETS = "/pipeline", "/etc/penstock", "/state", "/etc/penstock-secrets"
"""The directories of the files, the settings, the state and the secrets in a container.

`/run/secrets` is no place for a volume: Kubernetes mounts the token of the account below it.
"""
SETTINGS_FILE, POD_TEMPLATE = "kubernetes.yaml", "executor-pod.yaml"
MASTER = "k8s://https://kubernetes.default.svc"
USER = 1000
"""The user of the image. The driver and the executors read the state as the same user."""
STATE_SIZE = "10Gi"
GRACE_SECONDS = 300
"""The time for a stop, which ends the batch under way."""

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Deployment:
    """A pipeline with the options of its deployment. All objects have the same name."""

    project: Project
    name: str
    namespace: str
    image: str
    executors: Executors

    @property
    def pod(self) -> str:
        """The pod of the driver: the first of its StatefulSet."""
        return f"{self.name}-0"

    @property
    def claim(self) -> str:
        """The claim that the StatefulSet makes for its first pod."""
        return f"{_STATE_VOLUME}-{self.pod}"

    @property
    def claims_state(self) -> bool:
        """Whether the state is in a claim, and not in an object store."""
        return self.project.plan.location.url is None

    @property
    def is_one_pod(self) -> bool:
        """Whether there are no executors: the driver runs the tasks."""
        return self.executors.number == 0

    @property
    def ports(self) -> dict[str, int]:
        """The ports of the driver itself. Only executors connect to the first two."""
        metrics = {"metrics": METRICS_PORT}
        if self.is_one_pod:
            return metrics
        return {"driver": DRIVER_PORT, "blocks": BLOCK_PORT, **metrics}

    @cached_property
    def shares_state(self) -> bool:
        """Whether the executors need the state directory, too."""
        return not self.is_one_pod and bool(shared_state(self.project.plan))

    @cached_property
    def listeners(self) -> list[Listener]:
        """The sources and sinks that listen."""
        return listeners(self.project.plan)

    @cached_property
    def open_ports(self) -> list[Listener]:
        """The listeners that other pods reach. Raises UserError for a port of the driver itself."""
        return open_ports(self.listeners, self.ports)

    @property
    def listening_service(self) -> str:
        """The Service of the sources and sinks that listen."""
        return f"{self.name}-listen"

    @property
    def files_map(self) -> str:
        return f"{self.name}-files"

    @property
    def settings_map(self) -> str:
        return f"{self.name}-settings"

    @cached_property
    def file_keys(self) -> dict[str, str]:
        """The key in the config map of each file."""
        return dict(keys(self.project.files))

    @cached_property
    def secret_file_keys(self) -> dict[str, str]:
        """The key in the Secret of each file with a secret. No variable has such a name."""
        return {path: f"file-{key}" for path, key in keys(self.project.secret_files).items()}

    @cached_property
    def secret_keys(self) -> dict[str, str]:
        """The key in the Secret of each name in the directory of secrets."""
        return {name: f"secret-{key}" for name, key in keys(self.project.secrets).items()}

    @property
    def needs_secret(self) -> bool:
        project = self.project
        return bool(project.variables or project.secret_files or project.secrets)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of all objects."""
        return {
            "app.kubernetes.io/name": "penstock",
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/managed-by": "penstock",
        }

    def selector(self, component: str) -> dict[str, str]:
        """Returns the labels that select the pods of a component."""
        return {
            "app.kubernetes.io/name": "penstock",
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/component": component,
        }

    def metadata(self, name: str | None = None) -> Manifest:
        return {
            "name": name or self.name,
            "namespace": self.namespace,
            "labels": self.labels,
        }


_STATE_VOLUME = "state"
