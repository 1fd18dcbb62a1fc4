"""The registry as this process knows it: schemas by id, versions of subjects, registration."""

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
from penstock.sdk.kit.registry.options import RegistryOptions

_NO_SUBJECT, _NO_VERSION, _NO_SCHEMA = 40401, 40402, 40403
_INVALID = 422


@dataclass(frozen=True)
class Draft:
    """A schema; `references` are those that its text names: name, subject and version of each."""

    kind: str
    text: str
    references: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True)
class Registered(Draft):
    """A schema that the registry has."""

    id: int = 0
    version: int | None = None


@dataclass
class Registry:
    """A registry, asked through Confluent's client.

    Every call raises Transient where the registry does not answer and Permanent where it refuses.
    """

    options: RegistryOptions
    _kept: dict[Any, Any] = field(default_factory=dict)
    _made: Any = None

    @staticmethod
    def of(options: RegistryOptions) -> Registry:
        """The one of this process, with all that it has learned."""
        key = hashlib.sha256(pickle.dumps(options)).hexdigest()
        if key not in _registries:
            _registries[key] = Registry(options)
        return _registries[key]

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` returned for the key, for ever: ids are never used again."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def check(self) -> None:
        """Asks for something small."""
        with self._told("use the schema registry"):
            self._client.get_schema_types()

    def by_id(self, id_: int) -> Registered:
        """The schema of an id. Raises DecodeError if there is none."""
        return self.kept(("id", id_), lambda: self._by_id(id_))  # type: ignore[no-any-return]

    def _by_id(self, id_: int) -> Registered:
        from confluent_kafka.schema_registry import SchemaRegistryError

        with self._told(f"read schema {id_}"):
            try:
                found = self._client.get_schema(id_)
            except SchemaRegistryError as error:
                if error.error_code != _NO_SCHEMA:
                    raise
                raise DecodeError(
                    f"the registry has no schema with the id {id_}", code="unknown-schema"
                ) from None
        return _registered(found, id_, None)

    def of_subject(self, subject: str) -> Registered:
        """The version that the options ask for. Raises Permanent if there is none."""
        from confluent_kafka.schema_registry import SchemaRegistryError

        asked = self.options.version
        with self._told(f'read the schema of subject "{subject}"'):
            try:
                return self._version(subject, asked)
            except SchemaRegistryError as error:
                if error.error_code not in (_NO_SUBJECT, _NO_VERSION):
                    raise
                what = "no schema" if asked == "latest" else f"no version {asked}"
                raise Permanent(
                    f'the registry has {what} of subject "{subject}"',
                    code="no-subject",
                    hint="`subject` names another; the subject of a topic is usually TOPIC-value",
                ) from None

    def referenced(self, schema: Draft) -> Iterator[tuple[str, Registered]]:
        """The schemas that one refers to, with the names that it has for them."""
        for name, subject, version in schema.references:
            with self._told(f'read version {version} of subject "{subject}"'):
                read = partial(self._version, subject, version)
                yield name, self.kept(("version", subject, version), read)

    def register(self, subject: str, draft: Draft) -> int:
        """The id of a schema, which is a version of the subject from now on.

        Raises Permanent in the registry's own words if it takes none such.
        """
        return int(self.kept((subject, draft), lambda: self._register(subject, draft)))

    def _register(self, subject: str, draft: Draft) -> int:
        from confluent_kafka.schema_registry import Schema, SchemaReference

        named = [SchemaReference(*each) for each in draft.references]
        with self._told(f'register a schema for subject "{subject}"'):
            return int(self._client.register_schema(subject, Schema(draft.text, draft.kind, named)))

    def set_compatibility(self, subject: str, level: str) -> None:
        """What later versions of a subject must be compatible with."""
        with self._told(f'set the compatibility of subject "{subject}"'):
            self._client.set_compatibility(subject, level)

    def _version(self, subject: str, version: Any) -> Registered:
        client = self._client
        found = (
            client.get_latest_version(subject)
            if version == "latest"
            else client.get_version(subject, version)
        )
        return _registered(found.schema, found.schema_id, found.version)

    @property
    def _client(self) -> Any:
        """Without memory of what may change: subjects and their latest versions."""
        from confluent_kafka.schema_registry import SchemaRegistryClient

        if self._made is None:
            with self._told("use the schema registry"):
                own = {"cache.capacity": 1, "cache.latest.ttl.sec": 0}
                self._made = SchemaRegistryClient({**self.options.properties(), **own})
            if not getattr(self.options.tls, "verify_hostname", True):
                self._made._rest_client.verify.check_hostname = False
        return self._made

    @contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        """The errors of the client in our words."""
        from confluent_kafka.schema_registry import SchemaRegistryError

        try:
            yield
        except PenstockError:
            raise
        except SchemaRegistryError as error:
            raise _fault(error, doing, self.options.address) from error
        except Exception as error:
            raise _silence(error, doing, self.options.address) from error


_registries: dict[str, Registry] = {}


def _registered(schema: Any, id_: int, version: int | None) -> Registered:
    references = tuple((each.name, each.subject, each.version) for each in schema.references or ())
    return Registered(schema.schema_type or "AVRO", schema.schema_str, references, id_, version)


def _fault(error: Any, doing: str, address: str) -> Transient | Permanent:
    status, said = error.http_status_code, str(error.error_message)
    if status in (401, 403):
        return Permanent(
            f"cannot {doing}: the registry at {address} refuses who we are ({status})",
            code="authentication" if status == 401 else "forbidden",
            hint="look at `username` and `password`, or `token`, of `registry`",
            detail=said,
        )
    if status == 409:
        return Permanent(
            f"cannot {doing}: it is not compatible with those that are there",
            code="incompatible-schema",
            hint="`compatibility` sets what is asked of the subject; another `subject` starts anew",
            detail=said,
        )
    if status in (408, 429) or status >= 500:
        return Transient(
            f"could not {doing}: the registry at {address} answers {status}",
            code="registry-unavailable",
            hint="look at the registry's own log",
            detail=said,
        )
    code = "invalid-schema" if status == _INVALID else "refused"
    hint = None if status == _INVALID else "is `url` the address of a registry's API?"
    why = (
        f"{error.error_message} ({status})"
        if error.error_message
        else f"{address} answers {status}"
    )
    return Permanent(f"cannot {doing}: {why}", code=code, hint=hint)


def _silence(error: BaseException, doing: str, address: str) -> Transient | Permanent:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Permanent(
                f"cannot {doing}: there is no trust between us and {address}",
                code="tls",
                hint="tls: {ca: FILE} names those to trust",
                detail=str(error),
            )
        cause = cause.__cause__ or cause.__context__
    return Transient(
        f"could not {doing}: the registry at {address} does not answer",
        code="registry-unavailable",
        hint="is it running, and is `url` of `registry` right?",
        detail=f"{type(error).__name__}: {error}",
    )
