"""The pods that Spark makes from the settings of a deployment, by Spark's own builder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from ruamel.yaml import YAML

from penstock.deploy.executors import Executors
from penstock.deploy.image.entrypoint import CLASS, executor_command
from penstock.deploy.kubernetes.deployment import Deployment
from penstock.deploy.kubernetes.pods import executor_template
from penstock.deploy.kubernetes.settings import spark_settings
from penstock.deploy.project import read_project
from penstock.spec.yaml.writer import to_text

pytestmark = pytest.mark.spark

PIPELINE = """\
name: small
sources:
  rows:
    type: http
    listen: "localhost:8080"
    format: json
    schema: at TIMESTAMP
    watermark: {column: at, delay: 1s}
transforms:
  counts:
    type: sql
    sql: SELECT window.start AS at, count(*) AS n FROM rows GROUP BY window(at, '1 minute')
sinks: {out: {type: blackhole, from: counts}}
"""
"""Pipeline with a state that the executors share: that of a window."""
DRIVER = """\
apiVersion: v1
kind: Pod
metadata: {name: shop-0, uid: 0f}
"""


def companion(package: Any, name: str) -> Any:
    """Returns an object of Scala."""
    return getattr(package, f"{name}$").__getattr__("MODULE$")


def build(spark: SparkSession, settings: dict[str, str]) -> Any:
    """Returns the pod of executor 7."""
    java: Any = spark
    jvm = java._jvm
    profiles = companion(jvm.org.apache.spark.resource, "ResourceProfile")
    k8s = jvm.org.apache.spark.deploy.k8s
    conf = jvm.org.apache.spark.SparkConf(False)
    for name, value in settings.items():
        conf.set(name, value)
    serialization = jvm.io.fabric8.kubernetes.client.utils.KubernetesSerialization()
    driver = jvm.scala.Option.apply(serialization.unmarshal(DRIVER))
    executor = k8s.KubernetesConf.createExecutorConf(conf, "7", "spark-app", driver, 0)
    entries = companion(jvm.org.apache.spark.internal.config, "package")
    security = jvm.org.apache.spark.SecurityManager(
        conf, jvm.scala.Option.empty(), entries.AUTH_SECRET_FILE()
    )
    client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
    profiles.clearDefaultProfile()
    try:
        profile = profiles.getOrCreateDefaultProfile(conf)
        builder = jvm.org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBuilder()
        pod = builder.buildFromFeatures(executor, security, client, profile).pod()
        whole: Any = YAML(typ="safe").load(serialization.asYaml(pod.pod()))
        container = YAML(typ="safe").load(serialization.asYaml(pod.container()))
        return {**whole, "spec": {**whole["spec"], "containers": [container]}}
    finally:
        client.close()
        profiles.clearDefaultProfile()
        profiles.getOrCreateDefaultProfile(java._jsc.sc().conf())


def test_the_pod_of_an_executor(penstock_spark: SparkSession, tmp_path: Path) -> None:
    pipeline, template = tmp_path / "small.yaml", tmp_path / "template.yaml"
    pipeline.write_text(PIPELINE)
    project = read_project([pipeline], {})
    deployment = Deployment(project, "shop", "streams", "e.com/penstock:1", Executors(3, 2, 2048))
    template.write_text(to_text(executor_template(deployment)))
    settings = spark_settings(deployment)
    settings["spark.kubernetes.executor.podTemplateFile"] = str(template)
    pod = build(penstock_spark, settings)
    metadata, spec = pod["metadata"], pod["spec"]
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", "shop-0", "0f")
    assert metadata["name"].startswith("shop-") and metadata["name"].endswith("-exec-7")
    assert metadata["labels"]["app.kubernetes.io/component"] == "executor"
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsUser"] == 1000
    (container,) = spec["containers"]
    assert (container["name"], container["image"]) == ("executor", "e.com/penstock:1")
    assert container["args"] == ["executor"]
    memory = f"{2048 + deployment.executors.overhead_mib}Mi"
    assert container["resources"]["limits"]["memory"] == memory
    assert container["resources"]["requests"]["cpu"] == "2"
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in spec["volumes"]}
    claim = volumes[mounts["/state"]]["persistentVolumeClaim"]
    assert claim["claimName"] == deployment.claim
    assert mounts["/pipeline"] == "pipeline" and "projected" in volumes["pipeline"]
    assert not any("configMap" in volume for volume in volumes.values())
    check_command({each["name"]: each.get("value", "10.0.0.7") for each in container["env"]})


def check_command(environment: dict[str, str]) -> None:
    """Checks the command that the image's entry point makes of the environment of the pod."""
    words = executor_command(Path("/java"), environment)
    arguments = words[words.index(CLASS) + 1 :]
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert options["--driver-url"].endswith("@shop-0.shop.streams.svc:7078")
    assert (options["--executor-id"], options["--cores"]) == ("7", "2")
    assert options["--app-id"] == "spark-app" and options["--hostname"] == "10.0.0.7"
    assert "-Xmx2048m" in words and "-Dspark.driver.port=7078" in words
