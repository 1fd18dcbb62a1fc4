"""The bench `kafka` by hand in bytewax: Python record by record, with orjson, one worker.

A second worker would share the first one's interpreter lock: it costs more CPU and gains nothing.
"""

from __future__ import annotations

import sys
from datetime import datetime

import bytewax.operators as op
import orjson
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.testing import cluster_main


def order(message: object) -> KafkaSinkMessage[bytes, bytes] | None:
    click = orjson.loads(message.value)
    if click["action"] not in ("cart", "purchase") or click["price"] < 20:
        return None
    at = datetime.fromisoformat(click["at"])
    row = {
        "id": click["id"],
        "user": click["user"],
        "country": click["country"],
        "action": click["action"],
        "at": at,
        "total": click["price"] * click["quantity"],
        "section": click["page"].split("/", 2)[1],
        "hour": at.replace(minute=0, second=0, microsecond=0),
    }
    return KafkaSinkMessage(click["user"].encode(), orjson.dumps(row, option=orjson.OPT_UTC_Z))


def main(brokers: str, source: str, target: str) -> None:
    flow = Dataflow("clicks")
    clicks = op.input("read", flow, KafkaSource([brokers], [source], tail=False, batch_size=10_000))
    op.output("write", op.filter_map("order", clicks, order), KafkaSink([brokers], target))
    cluster_main(flow, [], 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
