"""Config maps of a deployment: the files of the pipeline, and the settings of the run."""

from __future__ import annotations

import base64
import hashlib

from penstock.core.errors import UserError
from penstock.core.units import binary_size_text
from penstock.deploy.kubernetes.deployment import (
    POD_TEMPLATE,
    SETTINGS_FILE,
    Deployment,
    Manifest,
)
from penstock.deploy.kubernetes.settings import run_settings
from penstock.spec.yaml.writer import styled_text, to_text

MAX_BYTES = 1_000_000
"""The maximum size of the files: Kubernetes limits an object to 1 MiB."""


def files_map(deployment: Deployment) -> Manifest:
    """Returns the config map of the files. Raises UserError if they are too large."""
    files = deployment.project.files
    size = sum(len(content) * (1 if _is_text(content) else 4 / 3) for content in files.values())
    if size > MAX_BYTES:
        largest = max(files, key=lambda path: len(files[path]))
        raise UserError(
            f"the files of the pipeline have {binary_size_text(size)}, "
            f"more than a ConfigMap of Kubernetes may have ({binary_size_text(MAX_BYTES)})",
            code="file-too-large",
            hint=f"Add {largest} to the image and name it by an absolute path; "
            f"it has {binary_size_text(len(files[largest]))}.",
        )
    manifest = _config_map(deployment, deployment.files_map)
    for path, key in deployment.file_keys.items():
        content = files[path]
        if _is_text(content):
            manifest.setdefault("data", {})[key] = styled_text(content.decode())
        else:
            encoded = base64.b64encode(content).decode()
            manifest.setdefault("binaryData", {})[key] = encoded
    return manifest


def settings_map(deployment: Deployment, pod_template: Manifest) -> Manifest:
    """Returns the config map of the settings of the run and of the pods of executors, if any."""
    manifest = _config_map(deployment, deployment.settings_map)
    manifest["data"] = {SETTINGS_FILE: styled_text(to_text(run_settings(deployment)))}
    if not deployment.is_one_pod:
        manifest["data"][POD_TEMPLATE] = styled_text(to_text(pod_template))
    return manifest


def checksum(*config_maps: Manifest) -> str:
    """Returns a checksum of config maps, whose change starts the driver again."""
    content = [(each.get("data"), each.get("binaryData")) for each in config_maps]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def _config_map(deployment: Deployment, name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": deployment.metadata(name)}


def _is_text(content: bytes) -> bool:
    """Returns whether YAML can hold the content as it is."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return "\r" not in text and all(c.isprintable() or c in "\n\t" for c in text)
