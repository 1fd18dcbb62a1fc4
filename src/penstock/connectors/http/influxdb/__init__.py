"""InfluxDB: a sink of points, as line protocol."""

from penstock.connectors.http.influxdb.sink import InfluxdbSink

__all__ = ["InfluxdbSink"]
