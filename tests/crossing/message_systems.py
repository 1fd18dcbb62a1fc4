"""Systems of messages of the crossing, in JSON, and in Avro for Kafka."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import cache
from http.client import HTTPConnection
from typing import Any
from urllib.error import URLError

from crossing.systems import INTEGER_KEYS, JSON_NULL, Options, System
from servers.aws import REGION
from servers.mosquitto import Subscriber
from servers.server import free_port

AVRO = {"type": "avro", "framing": "container"}


def message_system(
    name: str, sink: Callable[[str], Options], source: Any = None, **more: Any
) -> System:
    """Returns a system of messages in JSON."""
    read = source or sink
    return System(
        name,
        lambda label: {**sink(label), "format": "json"},
        lambda label: {**read(label), "format": "json"},
        changed=JSON_NULL,
        **more,
    )


def kafka(server: Any) -> list[System]:
    @cache
    def topic(name: str) -> str:
        return str(server.create_topic(max_message_bytes=2_000_000))

    def options(name: str) -> Options:
        return {"type": "kafka", "brokers": server.address, "topic": topic(name)}

    def avro(name: str) -> Options:
        return {**options(f"avro {name}"), "format": AVRO}

    return [
        message_system("kafka", options),
        System("kafka_avro", avro, avro, columns=INTEGER_KEYS),
    ]


def nats(server: Any) -> list[System]:
    @cache
    def stream(name: str) -> str:
        return str(server.new_stream())

    return [
        message_system(
            "nats",
            lambda name: {
                "type": "nats", **server.login, "subject": f"{stream(name)}.rows",
                "stream": stream(name),
            },
            lambda name: {"type": "nats", **server.login, "stream": stream(name)},
        )
    ]  # fmt: skip


def redis(server: Any) -> list[System]:
    prefix = server.new_key()

    def options(name: str) -> Options:
        return {"type": "redis", **server.login, "stream": f"{prefix}:{name}"}

    return [message_system("redis", options)]


def pulsar(server: Any) -> list[System]:
    @cache
    def topic(name: str) -> str:
        return str(server.new_topic())

    return [
        message_system(
            "pulsar", lambda name: {"type": "pulsar", **server.login, "topic": topic(name)}
        )
    ]


def rabbitmq(server: Any) -> list[System]:
    @cache
    def queue(name: str) -> str:
        return str(server.new_queue())

    return [
        message_system(
            "rabbitmq",
            lambda name: {"type": "rabbitmq", **server.login, "routing_key": queue(name)},
            lambda name: {"type": "rabbitmq", **server.login, "queue": queue(name)},
            payloads=cache(lambda name: [each.body for each in server.messages(queue(name))]),
            feed=lambda name, payloads: server.publish(queue(name), payloads),
        )
    ]


def aws(server: Any) -> list[System]:
    access = {**server.access, "region": REGION}

    @cache
    def stream(name: str) -> str:
        made, kinesis = f"made-up-{uuid.uuid4().hex[:12]}", server.connect("kinesis")
        kinesis.create_stream(StreamName=made, ShardCount=1)
        kinesis.get_waiter("stream_exists").wait(StreamName=made)
        return made

    @cache
    def queue(name: str) -> tuple[str, str]:
        made = f"made-up-{uuid.uuid4().hex[:12]}"
        return made, str(server.connect("sqs").create_queue(QueueName=made)["QueueUrl"])

    @cache
    def taken(name: str) -> list[bytes]:
        sqs, url, found = server.connect("sqs"), queue(name)[1], list[bytes]()
        while some := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for each in some:
                found.append(each["Body"].encode())
                sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return found

    def send(name: str, payloads: list[bytes]) -> None:
        sqs, url = server.connect("sqs"), queue(name)[1]
        for each in payloads:
            sqs.send_message(QueueUrl=url, MessageBody=each.decode())

    return [
        message_system(
            "kinesis", lambda name: {"type": "kinesis", **access, "stream": stream(name)}
        ),
        message_system(
            "sqs",
            lambda name: {"type": "sqs", **access, "queue": queue(name)[0]},
            payloads=taken,
            feed=send,
        ),
    ]


def mqtt(server: Any) -> list[System]:
    @cache
    def subscriber(name: str) -> Subscriber:
        return Subscriber(server, topic(name)).__enter__()

    @cache
    def topic(name: str) -> str:
        return str(server.new_topic())

    def write(name: str) -> Options:
        subscriber(name)
        return {"type": "mqtt", **server.login, "topic": topic(name), "qos": 1}

    def read(name: str) -> Options:
        return {**write(name), "client_id": topic(name).replace("/", "-")}

    def received(name: str) -> list[bytes]:
        server.publish(topic(name), [b"last"], 2)
        while not any(each.payload == b"last" for each in subscriber(name).messages):
            time.sleep(0.01)
        return [each.payload for each in subscriber(name).messages if each.payload != b"last"]

    return [message_system("mqtt", write, read, payloads=cache(received))]


def http(server: Any) -> list[System]:
    @cache
    def path(name: str) -> str:
        return str(server.new_name())

    @cache
    def port(name: str) -> int:
        return free_port()

    def send(name: str, payloads: list[bytes]) -> None:
        for payload in payloads:
            while not _accepted(port(name), payload):
                time.sleep(0.05)

    return [
        message_system(
            "http",
            lambda name: {"type": "http", "url": f"{server.url}/kept/{path(name)}"},
            lambda name: {"type": "http", "listen": f"127.0.0.1:{port(name)}"},
            payloads=lambda name: server.bodies(path(name)),
            feed=send,
        )
    ]


def _accepted(port: int, payload: bytes) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/", payload)
        return connection.getresponse().status == 200
    except (OSError, URLError):
        return False
    finally:
        connection.close()
