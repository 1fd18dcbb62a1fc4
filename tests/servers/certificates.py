"""A certificate authority of the tests' own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates for this machine; whoever trusts the file `root` trusts them."""

    def __init__(self, directory: Path, name: str = "Tests") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        certificate = self._certificate(self._name, self._key.public_key(), constraints)
        self.root = directory / f"{name}.root.pem"
        self.root.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> Path:
        """A file with a new private key, not encrypted, and its certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=False, path_length=None)
        certificate = self._certificate(_named(name), key.public_key(), constraints)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path = self._directory / f"{name}.pem"
        path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, kind: x509.BasicConstraints
    ) -> x509.Certificate:
        hosts = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=30))
            .add_extension(kind, critical=True)
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
