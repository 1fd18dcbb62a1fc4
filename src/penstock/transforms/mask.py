"""The transform `mask`: hides values of columns."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from penstock.core.errors import OptionError
from penstock.core.names import quote_name
from penstock.sdk import Config, DataFrameTransform, Relation, Secret
from penstock.sdk.sql_text import SqlText
from penstock.sql.column_lineage import ChangedColumns
from penstock.sql.text.edits import Edit, Translation
from penstock.sql.text.quoting import quote
from penstock.transforms.columns import require

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CHARACTER = "(?s)."
_BITS = {"sha256": 256, "sha512": 512}


class Masking(Config):
    """The form of a hidden value: one of `hash`, `keep_last` and `pattern`, or the text
    `replacement`."""

    hash: Literal["sha256", "sha512"] | None = None
    """The hash of the value, in hexadecimal digits. Without `secret` a value of which few are
    possible can be found by trying them all."""
    secret: Secret | None = None
    """The key of the hash, which is then an HMAC."""
    keep_last: int | None = Field(default=None, ge=1)
    """The number of characters at the end that remain. The others are `*`, and so is the whole of
    a shorter value."""
    pattern: str | None = None
    """A regular expression of Java. Each match is replaced by `replacement`."""
    replacement: str = "***"
    """The text in place of the value, or of each match of `pattern`."""

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        forms = [name for name in ("hash", "keep_last", "pattern") if getattr(self, name)]
        if len(forms) > 1:
            raise ValueError(f"expected one of {', '.join(forms)}")
        if self.secret is not None and self.hash is None:
            raise ValueError("secret requires hash")
        if {"hash", "keep_last"} & {*forms} and "replacement" in self.model_fields_set:
            raise ValueError(f"replacement has no meaning with {forms[0]}")
        return self


_NAMED = {"hash": Masking(hash="sha256"), "redact": Masking()}


class MaskConfig(Config):
    columns: dict[str, Literal["hash", "redact"] | Masking] = Field(min_length=1)
    """The columns to hide, each with its form: `hash` (SHA-256), `redact` (the text `***`), or a
    map of options."""

    @property
    def forms(self) -> dict[str, Masking]:
        """The forms of the columns."""
        return {
            name: _NAMED[form] if isinstance(form, str) else form
            for name, form in self.columns.items()
        }


class Mask(DataFrameTransform[MaskConfig]):
    """Hides values of columns: by a hash, by asterisks, or by another text.

    The masked columns are STRING. Nulls remain. The text of a value is that of CAST to STRING.
    Equal values have equal hashes, so that rows can still be counted and joined.

    Parallel by partition. Dead letters of nodes upstream have the values in clear text.

    ```yaml
    type: mask
    from: customers
    columns:
      name: redact
      email: {hash: sha256, secret: "${env:HASH_KEY}"}
      card: {keep_last: 4}
      note: {pattern: "[0-9]{6,}", replacement: "#"}
    ```
    """

    def sql_texts(self) -> Sequence[SqlText]:
        return [
            SqlText(("columns", name, "pattern"), form.pattern, _as_call(form.pattern))
            for name, form in self.config.forms.items()
            if form.pattern is not None
        ]

    def relation(self) -> Relation:
        return Relation(incremental=True, lineage=ChangedColumns(tuple(self.config.columns)))

    def relate(self, inputs: Mapping[str, DataFrame], session: SparkSession) -> DataFrame:
        from pyspark.sql.functions import col

        (frame,) = inputs.values()
        require(self, frame, "columns", self.config.columns)
        forms = {name.lower(): (name, form) for name, form in self.config.forms.items()}
        masked = {}
        for field in frame.schema.fields:
            name, form = forms.get(field.name.lower(), ("", None))
            if form is None:
                continue
            type_ = field.dataType.simpleString()
            if type_.partition("<")[0] in ("array", "map", "struct", "variant"):
                raise OptionError.of(
                    "columns", name, code="wrong-type", of_key=True,
                    message=f'column "{field.name}" has the nested type {type_.upper()}',
                    hint="Use flatten or unnest before, or remove the column with drop.",
                )  # fmt: skip
            masked[field.name] = _mask(col(quote_name(field.name)), form, type_ == "binary")
        return frame.withColumns(masked)


def _mask(column: Column, form: Masking, is_binary: bool) -> Column:
    """Returns the masked values of a column; null for null."""
    from pyspark.sql.functions import length, lit, regexp_replace, sha2, udf, when

    text = column.cast("string")
    if form.secret is not None:
        assert form.hash is not None
        keyed_hash = udf(KeyedHash(form.hash, form.secret), "string", useArrow=False)
        return keyed_hash(column if is_binary else text.cast("binary"))
    if form.hash is not None:
        return sha2(column if is_binary else text, _BITS[form.hash])
    if form.keep_last is not None:
        hidden = regexp_replace(text, _CHARACTER, "*")
        partly = regexp_replace(text, f"{_CHARACTER}(?=.{{{form.keep_last}}})", "*")
        return when(length(text) > form.keep_last, partly).otherwise(hidden)
    if form.pattern is not None:
        return regexp_replace(text, form.pattern, form.replacement)
    return when(column.isNotNull(), lit(form.replacement))


@dataclass(frozen=True)
class KeyedHash:
    """A function that returns the HMAC of bytes. Plans of Spark do not show its key."""

    hash: str
    secret: Secret

    def __call__(self, value: bytes | None) -> str | None:
        if value is None:
            return None
        key = self.secret.reveal().encode()
        return hmac.new(key, bytes(value), getattr(hashlib, self.hash)).hexdigest()


def _as_call(pattern: str) -> Translation:
    """Returns the call in SQL with a pattern, in which the engine checks the pattern."""
    call = f"regexp_replace(value, {quote(pattern)}, '')"
    return Translation.of(pattern).edit([Edit(0, len(pattern), call)])
