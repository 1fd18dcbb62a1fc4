"""What the bench of connectors compares with: each system's own client, in a loop."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from clients.aws import Kinesis, Sqs
from clients.http import Http, HttpPoll, Sse, Websocket, WebsocketOut
from clients.kafka import KafkaTopic
from clients.modbus import ModbusDevice
from clients.mqtt import Mqtt
from clients.nats import JetStream, NatsSubject
from clients.pulsar import PulsarTopic
from clients.rabbitmq import RabbitmqQueue, RabbitmqStream
from clients.redis import RedisList, RedisStream
from clients.sockets import Tcp, Udp
from clients.zeromq import Zeromq

SYSTEMS = (
    KafkaTopic, PulsarTopic, JetStream, NatsSubject, RedisStream, RedisList, RabbitmqQueue,
    RabbitmqStream, Mqtt, Kinesis, Sqs, Http, HttpPoll, Sse, Websocket, WebsocketOut, Zeromq, Tcp,
    Udp, ModbusDevice,
)  # fmt: skip
