"""The commands of other clusters: `penstock check` accepts what they pass to `penstock run`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from project_files import ENVIRONMENT, write_files

from penstock import app
from penstock.spec.runtime_models import Runtime

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in {**ENVIRONMENT, "PENSTOCK_SECRETS": str(tmp_path / "secrets")}.items():
        monkeypatch.setenv(name, value)
    return write_files(tmp_path)


def run_words(script: str) -> list[str]:
    """Returns the words of the `penstock run` of a script."""
    lines = script.replace("\\\n", "").splitlines()
    (command,) = [line for line in lines if line.startswith("penstock run ")]
    return shlex.split(command)


def checked(said: Said, script: str) -> Runtime:
    """Checks the command of a script, and returns the settings of its run."""
    *words, listen, port = run_words(script)
    assert (listen, port) == ("--listen", "9090")
    code, out, err = said("check", *words[2:], "--level", "static")
    assert code == 0 and "no errors" in out, err
    files = [word for word in words[2:3] if not word.startswith("-")]
    overrides = [word for option, word in pairwise(words) if option == "--set"]
    return app.plan(files, overrides=overrides).spec.runtime


@pytest.mark.slow
def test_standalone(said: Said, path: Path) -> None:
    code, out, _ = said("deploy", "standalone", path, "--executors", 3, "--cores", 2)
    assert code == 0
    runtime = checked(said, out)
    assert runtime.master == "spark://MASTER:7077" and runtime.state == "/shared/penstock"
    assert runtime.java == "system"
    assert runtime.spark == {
        "spark.cores.max": 6, "spark.executor.cores": 2, "spark.executor.memory": "2048m",
    }  # fmt: skip
    assert "pip install 'penstock[http,kafka,protobuf]==" in out
    assert "#   " + str(path.parent / "protos/order.proto") in out and "shop.yaml\n" not in out


@pytest.mark.slow
def test_standalone_with_its_own_settings(said: Said, tmp_path: Path) -> None:
    path = tmp_path / "small pipeline.sql"
    path.write_text(
        "SET 'runtime.master' = 'spark://node:7077';\nSET 'runtime.state' = '/nfs/state';\n"
        "CREATE TABLE rows (id BIGINT) WITH ('connector' = 'impulse', 'event_rate' = '1');\n"
        "CREATE TABLE out WITH ('connector' = 'blackhole');\n"
        "INSERT INTO out SELECT id FROM rows;\n"
    )
    code, out, err = said("deploy", "standalone", path)
    assert code == 0, err
    assert "org.apache.spark.deploy.worker.Worker spark://node:7077\n" in out
    runtime = checked(said, out)
    assert (runtime.master, runtime.state) == ("spark://node:7077", "/nfs/state")
    out = said("deploy", "standalone", path, "--master", "spark://n:1", "--state", "/a b")[1]
    runtime = checked(said, out)
    assert (runtime.master, runtime.state) == ("spark://n:1", "/a b")


@pytest.mark.parametrize(
    "master", ["node-1:7077", "local[2]", "sc://node-1:15002", "spark://node-1"]
)
def test_a_master_that_is_no_standalone_cluster(said: Said, path: Path, master: str) -> None:
    code, out, err = said("deploy", "standalone", path, "--master", master)
    assert (code, out) == (2, "")
    assert f"error[usage]: --master: expected spark://HOST:PORT, found {master}" in err
    assert "hint: Write for example --master spark://node-1:7077." in err


@pytest.mark.parametrize("target", ["standalone", "yarn"])
def test_a_cluster_without_executors_is_an_error(said: Said, path: Path, target: str) -> None:
    code, out, err = said("deploy", target, path, "--executors", "0")
    assert (code, out) == (2, "")
    assert "error[usage]: --executors: expected at least 1, found 0" in err
    assert "penstock run, or in one pod by penstock deploy k8s --executors 0" in err


@pytest.mark.slow
def test_yarn_with_an_archive(said: Said, path: Path) -> None:
    code, out, _ = said("deploy", "yarn", path, "--archive", "--java-home", "/jvm/17")
    assert code == 0
    runtime = checked(said, out)
    assert runtime.master == "yarn" and runtime.spark["spark.executor.instances"] == 2
    archive, directory = str(runtime.spark["spark.archives"]).split("#")
    assert f"tar -czf {archive} -C {directory} ." in out
    assert f"pip install --target {directory} " in out and f"rm -rf {directory}/pyspark " in out
    assert runtime.spark["spark.executorEnv.PYTHONPATH"] == f"./{directory}"
    assert runtime.spark["spark.executorEnv.JAVA_HOME"] == "/jvm/17"
    assert runtime.spark["spark.executor.memoryOverhead"] == "1228m"
    assert "spark.archives" not in said("deploy", "yarn", path)[1]


@pytest.mark.parametrize("target", ["standalone", "yarn", "k8s"])
def test_a_state_in_an_object_store(said: Said, tmp_path: Path, target: str) -> None:
    path = tmp_path / "stored.sql"
    text = (
        "SET 'runtime.state' = 's3://bucket/states';\n"
        "CREATE TABLE a (id BIGINT) WITH ('connector' = 'impulse', 'event_rate' = '1');\n"
        "CREATE TABLE out WITH (connector = 'blackhole');\n"
        "INSERT INTO out SELECT id FROM a;\n"
    )
    window = "SELECT count(*) AS n FROM a GROUP BY tumble(interval '1 minute')"
    path.write_text(text.replace("SELECT id FROM a", window))
    image = ["--image", "registry.example.com/penstock:1"] if target == "k8s" else []
    code, _, error = said("deploy", target, path, *image)
    assert code == 2 and "error[object-store-state]" in error, error
    assert f"{path.name}:1" in error
    assert "deploy without executors: penstock deploy k8s --executors 0" in error
    path.write_text(text)
    code, out, error = said("deploy", target, path, *image)
    assert code == 0 and "runtime.state=" not in out and "persistentVolumeClaim" not in out, error
    note = "The state is in the object store of runtime.state."
    assert (note in out) == (target != "k8s") and "on this machine;" not in out


@pytest.mark.slow
def test_a_state_that_machines_share(said: Said, tmp_path: Path) -> None:
    path = tmp_path / "window.sql"
    path.write_text(
        "SET 'runtime.state' = 'state';\n"
        "CREATE TABLE a (id BIGINT) WITH ('connector' = 'impulse', 'event_rate' = '1');\n"
        "CREATE TABLE out WITH (connector = 'blackhole');\n"
        "INSERT INTO out SELECT count(*) AS n FROM a GROUP BY tumble(interval '1 minute');\n"
    )
    code, out, error = said("deploy", "standalone", path)
    assert code == 0 and "All machines share the directory of the state, for " in out, error
    assert "--state sets another directory." in out
