"""TLS: the `tls` option of connectors."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pydantic import model_validator

from penstock.core.errors import Permanent
from penstock.core.secret import Secret, revealed
from penstock.sdk.config import Config, UserFile

_LOST = re.compile(
    r"EOF (occurred|detected)|unexpected.eof|SYSCALL|closed (unexpectedly|by)|timed out|broken pipe"
    r"|connection (reset|aborted|has been closed)",
    re.IGNORECASE,
)


_OTHER_NAME = re.compile(
    "mismatch|not valid for|n[o']t match|name matches|hostnameverifier", re.IGNORECASE
)
"""Reasons of clients for a certificate that is issued for other host names."""


class Tls(Config):
    """Certificates and verification of a TLS connection."""

    ca: UserFile | None = None
    """The CA certificate file (PEM). The system's CA certificates by default."""
    certificate: UserFile | None = None
    """The certificate file of this end of the connection (PEM)."""
    key: UserFile | None = None
    """The private key file of `certificate` (PEM)."""
    key_password: Secret | None = None
    """The password of the private key."""
    verify: bool = True
    """Verify the certificate of the server."""
    verify_hostname: bool = True
    """Verify that the certificate of the server is issued for its host name."""

    @model_validator(mode="after")
    def _check_certificate_and_key(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("expected both certificate and key")
        return self

    def missing_files(self) -> Iterator[tuple[str, str]]:
        """Yields the options whose files do not exist, each with its file."""
        for option in ("ca", "certificate", "key"):
            path = getattr(self, option)
            if path is not None and not Path(path).is_file():
                yield option, path

    def check_files(self) -> None:
        """Raises Permanent if a certificate file does not exist."""
        for option, path in self.missing_files():
            raise Permanent(
                f"cannot read the file of tls.{option}: {path} does not exist",
                code="tls",
                hint="Check the path. A relative path starts at the pipeline file; "
                "every machine of a cluster needs the file.",
            )

    def context(self) -> ssl.SSLContext:
        """Returns an SSL context for a client. Raises Permanent if a file is unusable."""
        context = self._context(ssl.Purpose.SERVER_AUTH)
        context.check_hostname = self.verify and self.verify_hostname
        context.verify_mode = ssl.CERT_REQUIRED if self.verify else ssl.CERT_NONE
        return context

    def server_context(self) -> ssl.SSLContext:
        """Returns an SSL context for a server that presents `certificate`.

        With `ca` set, clients must present a certificate. Raises Permanent if a file is unusable.
        """
        context = self._context(ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = ssl.CERT_REQUIRED if self.ca else ssl.CERT_NONE
        return context

    def _context(self, purpose: ssl.Purpose) -> ssl.SSLContext:
        self.check_files()
        try:
            context = ssl.create_default_context(purpose, cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, revealed(self.key_password))
        except ssl.SSLError as error:
            raise Permanent(
                "cannot use the certificate files of tls", code="tls", detail=str(error)
            ) from None
        return context


def check_supported(tls: Tls | None, client: str) -> None:
    """Raises ValueError for settings without meaning for a client that has only files of TLS."""
    if tls is not None and tls.key_password is not None:
        raise ValueError(f"tls.key_password is not supported by {client}")
    if tls is not None and tls.verify and not tls.verify_hostname:
        raise ValueError("tls.verify_hostname: false requires tls.verify: false")


def certificate_hint(reason: str, otherwise: str = "Set tls.ca to the CA certificate file.") -> str:
    """Returns the hint for the certificate of a server that a client rejects with a reason."""
    if _OTHER_NAME.search(reason):
        return "Use a host name for which the certificate of the server is issued."
    return otherwise


def is_lost_connection(reason: str) -> bool:
    """Returns whether an error of TLS is the end of a connection, as while a server restarts.

    `reason` is the text of OpenSSL or a client. Other errors are about certificates or versions.
    """
    return _LOST.search(reason) is not None


TlsOption = Tls | bool | None
"""The type of every `tls` option. None follows the URL's scheme, or means no TLS without one."""


def resolve_tls(option: TlsOption, scheme: bool | None = None) -> Tls | None:
    """Returns the TLS settings of a connection; None for a connection without TLS.

    `scheme` is True for a URL scheme with TLS, False for one without TLS, and None for an address
    without a scheme or a scheme for both. Raises ValueError if the option contradicts the scheme.
    """
    if option is None:
        return Tls() if scheme else None
    if option is False:
        if scheme:
            raise ValueError("tls: false contradicts the scheme of the URL")
        return None
    if scheme is False:
        raise ValueError("tls requires a URL with a TLS scheme")
    return option if isinstance(option, Tls) else Tls()
