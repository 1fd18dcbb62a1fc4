"""Lakes of Arroyo: the options of tables of Delta Lake and Apache Iceberg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.spec.dialects.arroyo.files import STORAGE, TIME_PATTERN, combine_files
from penstock.spec.dialects.arroyo.option_rules import SWITCH, Key, Rules, split_list
from penstock.spec.script.options import Option
from penstock.spec.tree.nodes import ScalarNode

_TABLE, _NAMESPACE = "table_name", "namespace"
_CODEC = ("table_properties", "write.parquet.compression-codec")
_CODECS = {
    "uncompressed": "uncompressed", "lz4_raw": "lz4",
    **{name: name for name in ("zstd", "snappy", "gzip", "lz4")},
}  # fmt: skip

FILES: Rules = {
    "rolling_policy.file_size": Key("batch.max_size"),
    "rolling_policy.interval": Key("batch.interval"),
    "rolling_policy.watermark_expiration": Key("", SWITCH),
    "filename.prefix": Key(),
    "filename.suffix": Key(),
    "filename.strategy": Key("", dict.fromkeys(("serial", "uuid", "uuid_v7", "ulid"), "")),
    "shuffle_by_partition.enabled": Key("", SWITCH),
    "multipart.target_part_size": Key(),
    "multipart.max_parts": Key(),
    "multipart.minimum_multipart_size": Key(),
    "sink.version": Key("", {"v1": "", "v2": ""}),
}
"""The options of the files of a table. A version of the table is a batch of rows."""
DELTA_SINK: Rules = {
    **FILES,
    "partitioning.fields": Key("partition_by", convert=split_list),
    TIME_PATTERN: Key(),
}
_OF_FORMAT: Rules = {"format": Key("", {"parquet": ""}), "parquet.row_group_size": Key()}
DELTA_FORMAT: Rules = {**_OF_FORMAT, "parquet.compression": Key("", dict.fromkeys(_CODECS, ""))}
"""The options of the format of files, which is that of the table."""
CATALOG: Rules = {
    **STORAGE,
    "catalog.type": Key("catalog.type", {name: name for name in ("rest", "sql", "glue", "hive")}),
    "catalog.rest.url": Key("catalog.url"),
    "catalog.rest.token": Key("catalog.auth.token"),
    _TABLE: Key("table"),
    "location_path": Key("location"),
}
ICEBERG_FORMAT: Rules = {**_OF_FORMAT, "parquet.compression": Key(_CODEC, _CODECS)}


def combine_iceberg(options: Sequence[Option], table: str) -> list[Option]:
    """Returns the options with the namespace in front of the name of the table."""
    options = combine_files(options, table)
    name = next((each for each in options if each.name == _TABLE), None)
    if name is None or not isinstance(name.value, ScalarNode):
        return options
    namespace = next((each for each in options if each.name == _NAMESPACE), None)
    value = namespace.value if namespace is not None else None
    prefix = str(value.value) if isinstance(value, ScalarNode) else "default"
    text = f"{prefix}.{name.value.value}"
    node = replace(name.value, value=text, written=text, text=text, plain=False, span=None)
    qualified = replace(name, value=node)
    return [qualified if each is name else each for each in options if each is not namespace]
