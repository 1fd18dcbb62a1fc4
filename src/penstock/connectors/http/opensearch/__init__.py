"""Elasticsearch and OpenSearch: sources and sinks of documents."""

from penstock.connectors.http.opensearch.sink import ElasticsearchSink, OpensearchSink
from penstock.connectors.http.opensearch.source import ElasticsearchSource, OpensearchSource

__all__ = ["ElasticsearchSink", "ElasticsearchSource", "OpensearchSink", "OpensearchSource"]
