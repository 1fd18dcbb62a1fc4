"""Client of a schema registry: schemas by ID, versions of subjects, registration."""

from __future__ import annotations

import hashlib
import pickle
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from penstock.core.errors import DecodeError, PenstockError, Permanent, Transient
from penstock.sdk.network.tls import certificate_hint
from penstock.sdk.schema_registry.options import RegistryOptions

_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
_INVALID = 422


@dataclass(frozen=True)
class Draft:
    """A schema. `references` are the name, subject and version of each referenced schema."""

    kind: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True)
class Registered(Draft):
    """A registered schema."""

    id: int = 0
    version: int | None = None


@dataclass
class Registry:
    """A schema registry, accessed through Confluent's client.

    All methods raise Transient if the registry does not respond, and Permanent if the registry
    rejects a request.
    """

    options: RegistryOptions
    _cache: dict[Any, Any] = field(default_factory=dict)
    _confluent: Any = None

    @staticmethod
    def of(options: RegistryOptions) -> Registry:
        """Returns the client of this process for the options, with its cache."""
        key = hashlib.sha256(pickle.dumps(options)).hexdigest()
        if key not in _registries:
            _registries[key] = Registry(options)
        return _registries[key]

    def cached(self, key: Any, create: Callable[[], Any]) -> Any:
        """Returns the cached value of a key, created on first use. Entries never expire."""
        if key not in self._cache:
            self._cache[key] = create()
        return self._cache[key]

    def check(self) -> None:
        """Sends a small request to check the connection."""
        with self._translate_errors("use the schema registry"):
            self._client.get_schema_types()

    def get_schema(self, id_: int) -> Registered:
        """Returns the schema with an ID. Raises DecodeError for an unknown ID."""
        return self.cached(("id", id_), lambda: self._read_schema(id_))  # type: ignore[no-any-return]

    def _read_schema(self, id_: int) -> Registered:
        from confluent_kafka.schema_registry import SchemaRegistryError

        with self._translate_errors(f"read schema {id_}"):
            try:
                schema = self._client.get_schema(id_)
            except SchemaRegistryError as error:
                if error.error_code != _NO_SCHEMA:
                    raise
                raise DecodeError(
                    f"the registry has no schema with the ID {id_}", code="unknown-schema"
                ) from None
        return _registered(schema, id_, None)

    def get_subject_schema(self, subject: str) -> Registered:
        """Returns the configured version of a subject. Raises Permanent for an unknown version."""
        from confluent_kafka.schema_registry import SchemaRegistryError

        version = self.options.version
        with self._translate_errors(f'read the schema of subject "{subject}"'):
            try:
                return self._version(subject, version)
            except SchemaRegistryError as error:
                if error.error_code not in (_NO_SUBJECT, _NO_VERSION):
                    raise
                missing = "no schema" if version == "latest" else f"no version {version}"
                raise Permanent(
                    f'the registry has {missing} of subject "{subject}"',
                    code="unknown-subject",
                    hint="Set `subject`. The subject of a topic is usually TOPIC-value.",
                ) from None

    def get_references(self, schema: Draft) -> Iterator[tuple[str, Registered]]:
        """Yields the names and schemas of the references of a schema."""
        for name, subject, version in schema.references:
            with self._translate_errors(f'read version {version} of subject "{subject}"'):
                read = partial(self._version, subject, version)
                yield name, self.cached(("version", subject, version), read)

    def register(self, subject: str, draft: Draft) -> int:
        """Registers a schema as a version of the subject and returns its ID.

        Raises Permanent with the registry's message if the registry rejects the schema.
        """
        return int(self.cached((subject, draft), lambda: self._register(subject, draft)))

    def _register(self, subject: str, draft: Draft) -> int:
        from confluent_kafka.schema_registry import Schema, SchemaReference

        references = [SchemaReference(*reference) for reference in draft.references]
        with self._translate_errors(f'register a schema for subject "{subject}"'):
            schema = Schema(draft.text, draft.kind, references)
            return int(self._client.register_schema(subject, schema))

    def set_compatibility(self, subject: str, level: str) -> None:
        """Sets the compatibility level of a subject."""
        with self._translate_errors(f'set the compatibility of subject "{subject}"'):
            self._client.set_compatibility(subject, level)

    def _version(self, subject: str, version: Any) -> Registered:
        client = self._client
        entry = (
            client.get_latest_version(subject)
            if version == "latest"
            else client.get_version(subject, version)
        )
        return _registered(entry.schema, entry.schema_id, entry.version)

    @property
    def _client(self) -> Any:
        """Confluent's client, without a cache of subjects and their latest versions."""
        from confluent_kafka.schema_registry import SchemaRegistryClient

        if self._confluent is None:
            with self._translate_errors("use the schema registry"):
                settings = {"cache.capacity": 1, "cache.latest.ttl.sec": 0}
                self._confluent = SchemaRegistryClient({**self.options.properties(), **settings})
            if not getattr(self.options.tls, "verify_hostname", True):
                self._confluent._rest_client.verify.check_hostname = False
        return self._confluent

    @contextmanager
    def _translate_errors(self, action: str) -> Iterator[None]:
        """Raises errors of the client as Transient or Permanent."""
        from confluent_kafka.schema_registry import SchemaRegistryError

        try:
            yield
        except PenstockError:
            raise
        except SchemaRegistryError as error:
            raise _response_error(error, action, self.options.address) from error
        except Exception as error:
            raise _connection_error(error, action, self.options.address) from error


_registries: dict[str, Registry] = {}


def _registered(schema: Any, id_: int, version: int | None) -> Registered:
    references = tuple(
        (reference.name, reference.subject, reference.version)
        for reference in schema.references or ()
    )
    return Registered(schema.schema_type or "AVRO", schema.schema_str, references, id_, version)


def _response_error(error: Any, action: str, address: str) -> Transient | Permanent:
    status, message = error.http_status_code, str(error.error_message)
    if status in (401, 403):
        return Permanent(
            f"cannot {action}: authentication to the registry at {address} failed ({status})",
            code="authentication" if status == 401 else "authorization",
            hint="Check `auth` of `registry`.",
            detail=message,
        )
    if status == 409:
        return Permanent(
            f"cannot {action}: the schema is not compatible with earlier versions",
            code="incompatible-schema",
            hint="Set `compatibility`, or another `subject`.",
            detail=message,
        )
    if status in (408, 429) or status >= 500:
        return Transient(
            f"could not {action}: the registry at {address} answered {status}",
            code="unavailable",
            hint="See the log of the registry.",
            detail=message,
        )
    code = "invalid-schema" if status == _INVALID else "rejected"
    hint = None if status == _INVALID else "Set `url` to the API of a schema registry."
    reason = (
        f"{error.error_message} ({status})"
        if error.error_message
        else f"{address} answered {status}"
    )
    return Permanent(f"cannot {action}: {reason}", code=code, hint=hint)


def _connection_error(error: BaseException, action: str, address: str) -> Transient | Permanent:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Permanent(
                f"cannot {action}: TLS verification of {address} failed",
                code="tls",
                hint=certificate_hint(str(error)),
                detail=str(error),
            )
        cause = cause.__cause__ or cause.__context__
    return Transient(
        f"could not {action}: the registry at {address} did not answer",
        code="unreachable",
        hint="Check that the registry is running and that `url` of `registry` is correct.",
        detail=f"{type(error).__name__}: {error}",
    )
