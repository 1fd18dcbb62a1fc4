"""Sources and sinks that listen: ports, a Service and warnings of `penstock deploy k8s`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from test_helm_chart import CHART, objects, run_helm

from penstock.core.errors import PenstockError
from penstock.deploy.executors import Executors
from penstock.deploy.kubernetes.deployment import Deployment
from penstock.deploy.kubernetes.manifests import manifests, to_yaml
from penstock.deploy.project import read_project

PIPELINE = """\
name: edge
sources:
  in: {type: http, listen: "0.0.0.0:8080", schema: id BIGINT}
  lines: {type: tcp, listen: "[::]:9000", schema: id BIGINT}
  packets: {type: udp, listen: "0.0.0.0:9000", schema: id BIGINT}
sinks:
  out: {type: zeromq, from: in, listen: "tcp://*:5555"}
  others: {type: tcp, from: lines, connect: "collector:9001"}
  rest: {type: blackhole, from: packets}
"""
PORTS = [("TCP", 8080), ("TCP", 9000), ("UDP", 9000), ("TCP", 5555)]


def deployment(directory: Path, text: str = PIPELINE) -> Deployment:
    path = directory / "edge.yaml"
    path.write_text(text)
    return Deployment(read_project([path], {}), "edge", "streams", "e.com/p:1", Executors())


def service(found: list[dict[str, Any]]) -> dict[str, Any]:
    (each,) = (each for each in found if each["metadata"]["name"] == "edge-listen")
    return each


def test_each_listener_has_a_port_of_a_service(tmp_path: Path) -> None:
    found = manifests(deployment(tmp_path))
    spec, driver = service(found)["spec"], found[-1]["spec"]["template"]
    assert spec["type"] == "ClusterIP" and "clusterIP" not in spec
    assert [(each["protocol"], each["port"]) for each in spec["ports"]] == PORTS
    (container,) = driver["spec"]["containers"]
    ports = {each["name"]: each for each in container["ports"]}
    for each in spec["ports"]:
        port = ports[each["targetPort"]]
        assert (port["protocol"], port["containerPort"]) == (each["protocol"], each["port"])
    assert len(ports) == len(container["ports"]) == 3 + len(PORTS)
    assert all(len(name) <= 15 for name in ports), "the limit of Kubernetes"
    assert spec["selector"].items() <= driver["metadata"]["labels"].items()
    text = to_yaml(deployment(tmp_path))
    assert '# Other pods reach source "in" (type: http) at edge-listen.streams.svc:8080 (TCP).' in (
        text
    )


def test_the_chart_has_the_same_ports(tmp_path: Path) -> None:
    given = deployment(tmp_path)
    values = {"listen": [{"port": 8080}, *({"port": n, "protocol": p} for p, n in PORTS[1:])]}
    _, rendered = run_helm(values)
    chart = objects("\n---\n".join(rendered.values()).replace("shop", "edge"))
    own = objects(to_yaml(given))
    key = ("Service", "edge-listen")
    assert chart[key] == own[key]
    driver = ("StatefulSet", "edge")
    (in_chart,), (in_own,) = (
        each[driver]["spec"]["template"]["spec"]["containers"] for each in (chart, own)
    )
    assert in_chart["ports"] == in_own["ports"]


@pytest.mark.parametrize(
    ("kind", "address", "written"),
    [
        ("http", "127.0.0.1:8080", "0.0.0.0:8080"),
        ("tcp", "localhost:9000", "0.0.0.0:9000"),
        ("udp", "[::1]:9000", "0.0.0.0:9000"),
        ("http", "10.0.0.7:8080", "0.0.0.0:8080"),
        ("http", "0.0.0.0:0", "0.0.0.0:PORT"),
        ("zeromq", "tcp://127.0.0.1:5555", "tcp://0.0.0.0:5555"),
        ("zeromq", "ipc:///tmp/socket", "tcp://0.0.0.0:PORT"),
    ],
)
def test_an_address_of_one_machine_is_a_warning(
    kind: str, address: str, written: str, said: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "edge.yaml"
    path.write_text(
        "name: edge\n"
        f"sources: {{in: {{type: {kind}, listen: '{address}', schema: id BIGINT}}}}\n"
        "sinks: {out: {type: blackhole, from: in}}\n"
    )
    code, out, err = said("deploy", "k8s", path)
    assert code == 0 and "edge-listen" not in out
    assert "warning[local-address]" in err and f"other pods do not reach {address}" in err
    assert f"listen: {written}" in err and f"{path}:2:" in err
    assert [each["kind"] for each in YAML(typ="safe").load_all(out) if each].count("Service") == 1


def test_a_port_of_the_driver_is_an_error(tmp_path: Path) -> None:
    text = PIPELINE.replace("0.0.0.0:8080", "0.0.0.0:9090")
    with pytest.raises(PenstockError, match=r"needs the port 9090 itself \(metrics\)") as error:
        manifests(deployment(tmp_path, text))
    assert error.value.where is not None and error.value.where.line == 3
    datagrams = PIPELINE.replace('"0.0.0.0:9000"', '"0.0.0.0:9090"')
    assert manifests(deployment(tmp_path, datagrams))


def test_sources_with_the_same_port_have_one_port(tmp_path: Path) -> None:
    text = PIPELINE.replace("[::]:9000", "[::]:8080")
    ports = service(manifests(deployment(tmp_path, text)))["spec"]["ports"]
    assert [(each["protocol"], each["port"]) for each in ports].count(("TCP", 8080)) == 1


def test_the_balancer_of_the_page_selects_the_receivers(tmp_path: Path) -> None:
    page = (CHART.parents[2] / "docs/howto/cluster.md").read_text()
    blocks = dict(re.findall(r"```yaml title=(\S+)\n(.*?)```", page, re.DOTALL))
    balancer = YAML(typ="safe").load(blocks["balancer.yaml"])
    path = tmp_path / "receiver.yaml"
    path.write_text(blocks["receiver.yaml"])
    for name in ("receiver-1", "receiver-2"):
        each = Deployment(read_project([path], {}), name, "receivers", "e.com/p:1", Executors(0))
        template = manifests(each)[-1]["spec"]["template"]
        assert balancer["spec"]["selector"].items() <= template["metadata"]["labels"].items()
        (container,) = template["spec"]["containers"]
        ports = {port["name"] for port in container["ports"]}
        assert {port["targetPort"] for port in balancer["spec"]["ports"]} <= ports
    assert balancer["metadata"]["namespace"] == "receivers"
