"""Amazon SQS."""

from penstock.connectors.aws.sqs.sink import SqsSink
from penstock.connectors.aws.sqs.source import SqsSource

__all__ = ["SqsSink", "SqsSource"]
