"""Topics of an MQTT broker."""

from penstock.connectors.mqtt.sink import MqttSink
from penstock.connectors.mqtt.source import MqttSource

__all__ = ["MqttSink", "MqttSource"]
