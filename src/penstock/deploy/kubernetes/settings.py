"""Settings of a run on Kubernetes, as a file that overlays the pipeline."""

from __future__ import annotations

from typing import Any

from penstock.deploy.executors import DRIVER_MEMORY
from penstock.deploy.kubernetes.deployment import (
    BLOCK_PORT,
    DRIVER_PORT,
    MASTER,
    POD_TEMPLATE,
    SETTINGS,
    STATE,
    Deployment,
)

_CLAIM = "spark.kubernetes.executor.volumes.persistentVolumeClaim.state"


def run_settings(deployment: Deployment) -> dict[str, Any]:
    """Returns the document of the overlay: `runtime` alone."""
    executors = deployment.executors
    state = {"state": STATE} if deployment.claims_state else {}
    runtime = {"master": MASTER, "java": "system", **state}
    if not deployment.is_one_pod:
        return {"runtime": {**runtime, "spark": spark_settings(deployment)}}
    runtime |= {"master": executors.local_master, "memory": f"{executors.memory_mib}m"}
    return {"runtime": {**runtime, "spark": _local_settings(deployment)}}


def _local_settings(deployment: Deployment) -> dict[str, str]:
    """Returns the settings of Spark for a driver without executors.

    A heap of the pipeline in these settings precedes `runtime.memory`, and is therefore replaced.
    """
    heap = {DRIVER_MEMORY: f"{deployment.executors.memory_mib}m"}
    own = deployment.project.plan.spec.runtime.spark
    return {"spark.app.name": deployment.name, **(heap if DRIVER_MEMORY in own else {})}


def spark_settings(deployment: Deployment) -> dict[str, str]:
    """Returns the settings of Spark for a driver in the pod of the deployment.

    The names of executor pods have Spark's random part: a container that starts again would meet
    the pods of its predecessor under fixed names. The driver's pod owns them. Executors connect to
    the name of the driver: with the IP of its pod, Spark passes them the bind address. Spark makes
    neither config maps nor claims, so that the role needs no access to them.
    """
    own, executors = deployment.project.plan.spec.runtime.spark, deployment.executors
    settings = {
        "spark.app.name": deployment.name,
        "spark.driver.host": f"{deployment.pod}.{deployment.name}.{deployment.namespace}.svc",
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_PORT),
        "spark.executor.instances": str(executors.number),
        **executors.settings,
        "spark.executor.memoryOverhead": f"{executors.overhead_mib}m",
        "spark.kubernetes.namespace": deployment.namespace,
        "spark.kubernetes.container.image": deployment.image,
        "spark.kubernetes.driver.pod.name": deployment.pod,
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.executor.useDriverPodIP": "false",
        "spark.kubernetes.executor.podTemplateFile": f"{SETTINGS}/{POD_TEMPLATE}",
    }
    if deployment.shares_state:
        settings[f"{_CLAIM}.options.claimName"] = deployment.claim
        settings[f"{_CLAIM}.mount.path"] = STATE
    overhead = own.get("spark.executor.memoryOverhead")
    if overhead is not None:
        settings["spark.executor.memoryOverhead"] = str(overhead)
    return settings
