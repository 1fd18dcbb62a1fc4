"""Options of the Spark source and sink."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import Field, field_validator

from penstock.core.known_secrets import remember_secret
from penstock.sdk import Config, UserPath
from penstock.sdk.properties import Properties

_SECRET = re.compile(r"pass|secret|token|key|credential|\.auth", re.IGNORECASE)


class SparkConfig(Config):
    provider: str
    """The format, as in `spark.read.format`: `orc`, `bigquery`, or the class of one."""
    path: UserPath | None = None
    """The path of a format that has one: a directory, a file or a URL."""
    options: Properties = {}
    """The options of the format, such as `{connection.uri: ...}`. They are concealed in messages
    if their names are those of secrets."""

    @property
    def public_options(self) -> Mapping[str, str]:
        """The options that are not secrets."""
        options = self.options.items()
        return {name: value.reveal() for name, value in options if not _SECRET.search(name)}

    def reveal_options(self) -> Mapping[str, str]:
        """Returns the options of the format. Messages conceal those that are secrets."""
        found = {name: value.reveal() for name, value in self.options.items()}
        for name, value in found.items():
            if _SECRET.search(name):
                remember_secret(value)
        return found


class SparkSourceConfig(SparkConfig):
    pass


class SparkSinkConfig(SparkConfig):
    partition_columns: list[str] = Field(default=[])
    """The columns whose values are directories, for formats of files."""

    @field_validator("partition_columns")
    @classmethod
    def _check_distinct(cls, columns: list[str]) -> list[str]:
        if len({*columns}) < len(columns):
            raise ValueError("expected each column once")
        return columns
