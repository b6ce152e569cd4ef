"""Certificate authorities of our own, with servers and clients that they vouch for, and TLS that wants clients so."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.servers.http import Authority

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: str
    key: str


class CertificateAuthority:
    """Signs for `name`; itself signed by `above`, or a root."""

    def __init__(
        self, name: str, *, above: CertificateAuthority | None = None, days: tuple[float, float] = (-1, 2)
    ) -> None:
        self.key: CertificateIssuerPrivateKeyTypes = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name)
        signer = above or self
        builder = _builder(self.name, signer.name, self.key, days).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = builder.sign(signer.key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def pair(
        self,
        name: str,
        *,
        key: CertificateIssuerPrivateKeyTypes | None = None,
        days: tuple[float, float] = (-1, 2),
        host: str = "127.0.0.1",
    ) -> Pair:
        """A certificate of a server or client, valid from and to so many days from now."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
        made = _builder(_name(name), self.name, key, days).add_extension(names, critical=False)
        pem = made.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
        return Pair(pem, private_pem(key))

    def server(
        self, folder: Path, *, host: str = "127.0.0.1", days: tuple[float, float] = (-1, 2), chain: str = ""
    ) -> Authority:
        """What a server of this machine shows, in files of `folder`; `chain` is shown after its certificate."""
        pair = self.pair("server", host=host, days=days)
        folder.mkdir(parents=True)
        made = Authority(folder / "ca.crt", folder / "server.crt", folder / "server.key")
        made.ca_file.write_text(self.pem)
        made.chain_file.write_text(pair.certificate + chain)
        made.key_file.write_text(pair.key)
        return made


@dataclass(frozen=True, slots=True)
class Asking(Authority):
    """A server that asks for certificates of clients whom `clients` vouch for, and does without unless it `insists`."""

    clients: str = ""
    insists: bool = True
    newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3

    @classmethod
    def beside(
        cls, server: Authority, clients: str, *, insists: bool = True, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ) -> Asking:
        return cls(server.ca_file, server.chain_file, server.key_file, clients, insists, newest)

    def server_context(self) -> ssl.SSLContext:
        context = Authority.server_context(self)
        context.load_verify_locations(cadata=self.clients)
        context.verify_mode = ssl.CERT_REQUIRED if self.insists else ssl.CERT_OPTIONAL
        context.maximum_version = self.newest
        return context


def private_pem(key: CertificateIssuerPrivateKeyTypes) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: CertificateIssuerPrivateKeyTypes, days: tuple[float, float]
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * DAY)
        .not_valid_after(now + days[1] * DAY)
    )
