"""Amazon Kinesis Data Streams."""

from penstock.connectors.aws.kinesis.sink import KinesisSink
from penstock.connectors.aws.kinesis.source import KinesisSource

__all__ = ["KinesisSink", "KinesisSource"]
