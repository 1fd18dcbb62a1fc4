"""The components of a stream: their common options, and those that Penstock does not have."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.spec.dialects.options.components import component_reader

ENVELOPE = ("type!", "name = the table of a join", "codec:any = `decode` or `encode`")
"""The options of every input and output."""
_VECTORS = "Penstock has no components of models and vector stores"
UNSUPPORTED: Mapping[str, str] = dict.fromkeys(
    ("milvus", "qdrant", "pgvector", "embedding", "llm", "vector_search", "milvus_search",
     "pgvector_search"),
    _VECTORS,
)  # fmt: skip
"""Components of ArkFlow that Penstock does not have, each with the reason."""

read_component = component_reader(UNSUPPORTED)
