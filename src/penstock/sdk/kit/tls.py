"""Encryption as options: whom to trust, and who we are."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pydantic import model_validator

from penstock.core.errors import Permanent
from penstock.core.secret import Secret, revealed
from penstock.sdk.config import Config, UserPath


class Tls(Config):
    """Encryption, and who the two ends are."""

    ca: UserPath | None = None
    """A file with the certificates that are trusted (PEM), instead of the system's."""
    certificate: UserPath | None = None
    """A file with the client's own certificate (PEM), where the server wants one."""
    key: UserPath | None = None
    """A file with the key of the client's certificate (PEM)."""
    key_password: Secret | None = None
    """The password of the key, if it has one."""
    verify: bool = True
    """Whether the server's certificate is verified."""
    verify_hostname: bool = True
    """Whether the server's certificate must be for the name it is reached by."""

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            given, other = ("certificate", "key") if self.key is None else ("key", "certificate")
            raise ValueError(f"{given} needs {other}, too")
        return self

    def missing(self) -> Iterator[tuple[str, str]]:
        """The options whose files are not there, with these."""
        for option in ("ca", "certificate", "key"):
            path = getattr(self, option)
            if path is not None and not Path(path).is_file():
                yield option, path

    def need_files(self) -> None:
        """Raises Permanent if one of its files is not there."""
        for option, path in self.missing():
            raise Permanent(
                f"cannot read the file of tls: {option}: there is no {path}",
                code="tls",
                hint="a relative path begins at the pipeline file; every machine needs the file",
            )

    def context(self) -> ssl.SSLContext:
        """For Python's own TLS, as a client. Raises Permanent if a file cannot be used."""
        context = self._loaded(ssl.Purpose.SERVER_AUTH)
        context.check_hostname = self.verify and self.verify_hostname
        context.verify_mode = ssl.CERT_REQUIRED if self.verify else ssl.CERT_NONE
        return context

    def server_context(self) -> ssl.SSLContext:
        """For Python's own TLS, as a server, which `certificate` and `key` are of.

        With `ca` clients need a certificate of those. Raises Permanent if a file cannot be used.
        """
        context = self._loaded(ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = ssl.CERT_REQUIRED if self.ca else ssl.CERT_NONE
        return context

    def _loaded(self, purpose: ssl.Purpose) -> ssl.SSLContext:
        self.need_files()
        try:
            context = ssl.create_default_context(purpose, cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, revealed(self.key_password))
        except ssl.SSLError as error:
            raise Permanent(
                "cannot use the certificates of tls", code="tls", detail=str(error)
            ) from None
        return context


def tls_context(tls: Tls | bool) -> ssl.SSLContext | None:
    """The context of an option `tls`, which may be just `true`; None where it is not."""
    if tls is False:
        return None
    return (tls if isinstance(tls, Tls) else Tls()).context()
