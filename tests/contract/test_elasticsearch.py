from __future__ import annotations

import pytest

from penstock.connectors.http.opensearch import (
    ElasticsearchSink,
    ElasticsearchSource,
    OpensearchSink,
    OpensearchSource,
)
from penstock.testing.contract import SinkContract, SourceContract
from search_documents import ReadDocuments, WrittenDocuments
from servers.elasticsearch import Elasticsearch


class InPlaceOfElasticsearch:
    @pytest.fixture
    def url(self, elasticsearch: Elasticsearch) -> str:
        return elasticsearch.url


class TestElasticsearchSource(InPlaceOfElasticsearch, ReadDocuments, SourceContract):
    component = ElasticsearchSource
    implementation = OpensearchSource


class TestElasticsearchSink(InPlaceOfElasticsearch, WrittenDocuments, SinkContract):
    component = ElasticsearchSink
    implementation = OpensearchSink
