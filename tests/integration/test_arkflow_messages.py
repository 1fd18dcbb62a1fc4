"""A file of ArkFlow with inputs that do not end: windows, brokers, devices and web servers."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from math import inf
from string import Template
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from pipelines import Workspace

from servers import mosquitto as mqtt
from servers import nats as nats_server
from servers import pulsar as pulsar_server
from servers.modbus import UNIT, Modbus
from servers.mosquitto import Mosquitto, Subscriber
from servers.nats import Nats
from servers.pulsar import Pulsar
from servers.pushing import PASSWORD, USER, Pushing
from servers.server import free_port
from servers.web import Web

pytestmark = pytest.mark.spark

MQTT = "host: 127.0.0.1, port: $mqtt_port, username: $mqtt_user, password: $mqtt_password"
NATS = 'url: "$nats", auth: {username: $nats_user, password: $nats_password}'
STREAMS = """\
health_check: {address: "127.0.0.1:${health}"}
streams:
  - id: sessions
    input:
      type: multiple_inputs
      inputs:
        - {type: mqtt, name: users, topics: ["${name}/users"], qos: 1,
           client_id: "${name}-in", MQTT_OPTIONS}
        - {type: nats, name: orders, mode: {type: jet_stream, stream: "${orders}",
           consumer_name: orders}, NATS_OPTIONS}
    buffer:
      type: session_window
      gap: 5s
      join:
        query: "SELECT name, sum(x) AS x FROM users u JOIN orders o ON u.id = o.id GROUP BY name"
        codec: {type: json}
    pipeline: {processors: [{type: arrow_to_json}]}
    output: {type: mqtt, topic: {type: expr, expr: "concat('${name}/out/', name)"},
      client_id: "${name}-out", MQTT_OPTIONS}
    error_output: {type: mqtt, topic: {type: value, value: "${name}/out/errors"},
      client_id: "${name}-errors", MQTT_OPTIONS}
  - id: slides
    input: {type: nats, mode: {type: jet_stream, stream: "${slides}",
      consumer_name: slides}, NATS_OPTIONS}
    buffer: {type: sliding_window, window_size: 3, slide_size: 2, interval: 100ms}
    pipeline:
      processors:
        - {type: json_to_arrow}
        - {type: sql, query: "SELECT min(v) AS first, count(*) AS n FROM flow"}
    output: {type: nats, mode: {type: jet_stream, subject: {type: value,
      value: "${slid}.a"}}, NATS_OPTIONS}
  - id: pulsar
    input: {type: pulsar, service_url: "${pulsar}", topic: "${pulsar_in}",
      subscription_name: s, subscription_type: key_shared,
      auth: {type: token, token: "${pulsar_token}"}}
    pipeline:
      processors:
        - {type: json_to_arrow}
        - {type: sql, query: "SELECT v + 1 AS v FROM flow"}
    output: {type: pulsar, service_url: "${pulsar}", codec: {type: json},
      topic: {type: value, value: "${pulsar_out}"},
      auth: {type: token, token: "${pulsar_token}"}}
  - id: device
    input:
      type: multiple_inputs
      inputs:
        - type: modbus
          name: plc
          addr: "${modbus}"
          slave_id: ${unit}
          interval: 2s
          points:
            - {type: coils, name: on, address: 10, quantity: 2}
            - {type: holding_registers, name: level, address: 10, quantity: 1}
        - {type: memory, name: first, messages: ['{"on": [false], "level": [1]}'],
          codec: {type: json}}
    pipeline:
      processors: [{type: sql, query: "SELECT \\"on\\", level FROM flow"}]
    output: {type: mqtt, topic: {type: value, value: "${name}/out/device"},
      client_id: "${name}-device", codec: {type: json}, MQTT_OPTIONS}
  - id: news
    input: {type: websocket, url: "${socket}", timeout: 5,
      headers: {Authorization: "${basic}"}}
    pipeline: {processors: []}
    output: {type: http, url: "${web}/strict/$news", method: put, timeout_ms: 5000,
      retry_count: 1, headers: {X-From: arkflow},
      auth: {Basic: {username: ${web_user}, password: ${web_password}}}}
  - id: posts
    input: {type: http, address: " 127.0.0.1:${port} ", path: /in,
      auth: {type: bearer, token: made-up-token}}
    buffer: {type: memory, capacity: 2, timeout: 10m}
    pipeline: {processors: []}
    output: {type: http, url: "${web}/kept/$posts", method: POST, timeout_ms: 5000,
      retry_count: 1, auth: {type: bearer, token: other-token}}
""".replace("MQTT_OPTIONS", MQTT).replace("NATS_OPTIONS", NATS)


def is_ready(port: int) -> bool:
    """Returns whether all inputs of a run have subscribed."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/readiness", timeout=60) as answer:
            return bool(answer.status == 200)
    except HTTPError:
        return False


def until(condition: Callable[[], object]) -> None:
    """Waits for a condition."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_messages(
    workspace: Workspace, mosquitto: Mosquitto, nats: Nats, pulsar: Pulsar, modbus: Modbus,
    pushing: Pushing, web_server: Web,
) -> None:  # fmt: skip
    name, port, health = mosquitto.new_topic(), free_port(), free_port()
    orders, slides, slid = nats.new_stream(), nats.new_stream(), nats.new_stream()
    pulsar_in, pulsar_out, hub = pulsar.new_topic(), pulsar.new_topic(), pushing.new_name()
    modbus.set(10, 7)
    modbus.switch(10, True, False)
    news, posts = web_server.new_name(), web_server.new_name()
    basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    text = Template(STREAMS).substitute(
        name=name, news=news, posts=posts,
        mqtt_port=mosquitto.port, mqtt_user=mqtt.USER, mqtt_password=mqtt.PASSWORD,
        nats=nats.url, nats_user=nats_server.USER, nats_password=nats_server.PASSWORD,
        orders=orders, slides=slides, slid=slid, pulsar=pulsar.url, pulsar_in=pulsar_in,
        pulsar_out=pulsar_out, pulsar_token=pulsar_server.token(), modbus=modbus.address,
        unit=UNIT, socket=f"{pushing.ws_url}/hub/{hub}", basic=basic, web=web_server.url,
        web_user=USER, web_password=PASSWORD, port=port, health=health,
    )  # fmt: skip
    with Subscriber(mosquitto, f"{name}/out/#") as seen:

        def found(topic: str) -> list[bytes]:
            return [m.payload for m in seen.messages if m.topic == f"{name}/out/{topic}"]

        def has_joined() -> bool:
            """Sends the messages of a session, again if a busy machine divided them."""
            if time.monotonic() > sent[-1] + 40:
                number = len(sent)
                user = json.dumps({"id": number, "name": f"a{number}"}).encode()
                mosquitto.publish(f"{name}/users", [user, b"no json"])
                nats.put(f"{orders}.x", [b'{"id": %d, "x": %d}' % (number, x) for x in (5, 7)])
                sent.append(time.monotonic())
            return any(found(f"a{number}") for number in range(1, len(sent)))

        sent = [-inf]
        handle = workspace.start(text)
        until(lambda: len(found("device")) > 1)
        until(lambda: is_ready(health))
        has_joined()
        nats.put(f"{slides}.x", [b'{"v": 0}', b'{"v": 1}', b'{"v": 2}', b'{"v": 3}'])
        until(lambda: len(nats.messages(slid)) == 1)
        nats.put(f"{slides}.x", [b'{"v": 4}'])
        pulsar.send(pulsar_in, [b'{"v": 1}'])
        until(lambda: pushing.push(hub, b"hot"))
        for body in (b'{"p": 1}', b'{"p": 2}'):
            post = Request(f"http://127.0.0.1:{port}/in", body,
                           {"Authorization": "Bearer made-up-token"})  # fmt: skip
            urlopen(post, timeout=60).close()
        until(lambda: has_joined() and found("errors"))
        until(lambda: len(nats.messages(slid)) == 2)
        until(lambda: pulsar.messages(pulsar_out) and web_server.requests(news))
        until(lambda: len(web_server.requests(posts)) == 2)
        handle.stop()
        assert handle.wait(60) is not None
    errors = found("errors")
    damaged = errors.count(b"no json")
    assert 1 <= damaged < len(sent)
    for number in range(1, len(sent)):
        parts = {b'{"id": %d, "x": 5}', b'{"id": %d, "x": 7}', b'{"id": %d, "name": "a%d"}'}
        messages = {part % ((number,) * part.count(b"%d")) for part in parts}
        # A message without its partner in a window cannot be joined.
        failed = [each for each in errors if each in messages]
        if joined := found(f"a{number}"):
            assert (joined, failed) == ([b'{"name":"a%d","x":12}' % number], [])
        elif number < len(sent) - 1:
            assert sorted(failed) == sorted(messages)
        damaged += len(failed)
    assert damaged == len(errors)
    devices = [json.loads(payload) for payload in found("device")]
    assert {"on": [True, False], "level": [7]} in devices
    assert devices.count({"on": [False], "level": [1]}) == 1
    windows = [json.loads(message.data) for message in nats.messages(slid)]
    assert windows == [{"first": 0, "n": 3}, {"first": 2, "n": 3}]
    assert [message.data() for message in pulsar.messages(pulsar_out)] == [b'{"v":2}']
    (request,) = web_server.requests(news)
    assert request["method"] == "PUT" and request["headers"]["x-from"] == "arkflow"
    assert web_server.bodies(news) == [b"hot"]
    assert {request["headers"]["authorization"] for request in web_server.requests(posts)} == {
        "Bearer other-token"
    }
    assert web_server.bodies(posts) == [b'{"p": 1}', b'{"p": 2}']
    upgrade = pushing.kept(hub)[0]
    assert {key.lower(): value for key, value in upgrade["headers"].items()}[
        "authorization"
    ] == basic
