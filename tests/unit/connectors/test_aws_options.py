"""Invalid options of the connectors for SQS and Kinesis."""

from __future__ import annotations

from typing import Any

import pytest

from option_errors import Case, assert_option_error
from penstock.connectors.aws.kinesis.config import KinesisSinkConfig
from penstock.connectors.aws.sqs.config import SqsSinkConfig

SQS = {"queue": "orders"}
KINESIS = {"stream": "orders", "key": "{id}"}


@pytest.mark.parametrize(("model", "options"), [(SqsSinkConfig, SQS), (KinesisSinkConfig, KINESIS)])
@pytest.mark.parametrize(
    "case",
    [
        ({"tls": False}, "tls", "tls: false contradicts the scheme of the URL"),
        (
            {"tls": True, "endpoint_url": "http://localhost:1"},
            "tls",
            "tls requires a URL with a TLS scheme",
        ),
        ({"tls": {"verify_hostname": False}}, "tls", "requires tls.verify: false"),
        ({"auth": {"access_key": "a"}}, "auth", "expected access_key and secret_key"),
    ],
)
def test_invalid_options_of_the_connection(model: Any, options: Any, case: Case) -> None:
    assert_option_error(model, options, case)


@pytest.mark.parametrize(
    "case",
    [
        ({"queue": "q.fifo"}, "message_group", "a FIFO queue requires message_group"),
        (
            {"queue": "q.fifo", "message_group": "g", "delay": "1s"},
            "delay",
            "delay is not supported by FIFO queues",
        ),
        ({"deduplication_id": "{id}"}, "deduplication_id", "requires a FIFO queue"),
    ],
)
def test_invalid_options_of_the_sqs_sink(case: Case) -> None:
    assert_option_error(SqsSinkConfig, SQS, case)
