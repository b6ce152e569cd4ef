"""The whole: certificates, users, store, controllers and server, started and stopped together."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import secrets
import ssl
import tempfile
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from provisioner.sandbox import bootstrap
from provisioner.sandbox.access import MASTERS, Access
from provisioner.sandbox.api import Api
from provisioner.sandbox.controllers import Controllers
from provisioner.sandbox.server import Server
from provisioner.sandbox.store import ObjectStore
from provisioner.sandbox.types.kinds import BUILT_IN
from provisioner.sandbox.writing.writing import now
from provisioner.values import Identity

HOST = "127.0.0.1"
YEARS = 10


@dataclass(frozen=True, slots=True)
class SandboxUser:
    """A user by token; without one, a token is made and kept in the state."""

    name: str
    token: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""


ADMIN = SandboxUser("admin", groups=(MASTERS,))


class Sandbox:
    """`state` is a folder; starting again on the same one goes on with the same objects, tokens and certificate."""

    def __init__(self, state: Path, port: int = 0, users: Sequence[SandboxUser] = (ADMIN,)):
        state.mkdir(parents=True, exist_ok=True)
        state.chmod(0o700)  # tokens and the key of its certificate lie in it
        self._store = ObjectStore(state / "cluster.sqlite3")
        self._users = {user.name: user for user in users}
        self.tokens = {user.name: user.token or self._kept(f"token:{user.name}") for user in users}
        certificate, key = self._certificate()
        self.ca_pem = certificate
        identities = {self.tokens[it.name]: Identity(it.name, it.groups, it.uid) for it in users}
        access = Access(self._store, identities, self._kept("signing key").encode())
        self._fill()
        self._server = Server((HOST, port), _context(certificate, key), Api(self._store, access).answer)
        self._controllers = Controllers(self._store, {(kind.group, kind.plural) for kind in BUILT_IN})
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True, name="sandbox")
        self.url = f"https://{HOST}:{self._server.server_address[1]}"

    def start(self) -> None:
        self._controllers.start()
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._controllers.stop()
        self._store.close()

    def kubeconfig(self, *names: str) -> str:
        """A kubeconfig (YAML) with a context for each of `names`, by default for everybody; the first is current."""
        chosen = list(names or self._users)
        cluster = {"server": self.url, "certificate-authority-data": base64.b64encode(self.ca_pem.encode()).decode()}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "sandbox", "cluster": cluster}],
                "users": [{"name": name, "user": {"token": self.tokens[name]}} for name in chosen],
                "contexts": [{"name": name, "context": {"cluster": "sandbox", "user": name}} for name in chosen],
                "current-context": chosen[0],
            },
            sort_keys=False,
        )

    def _kept(self, name: str) -> str:
        value = self._store.fact(name)
        if not value:
            value = secrets.token_urlsafe(32)
            self._store.remember(name, value)
        return value

    def _certificate(self) -> tuple[str, str]:
        if not self._store.fact("ca"):
            certificate, key = _self_signed()
            self._store.remember("ca", certificate)
            self._store.remember("ca key", key)
        return self._store.fact("ca"), self._store.fact("ca key")

    def _fill(self) -> None:
        for key, obj in bootstrap.objects():
            if self._store.get(key) is None:
                meta = {**obj["metadata"], "uid": str(uuid.uuid4()), "creationTimestamp": now()}
                self._store.put(key, {**obj, "metadata": meta})


def _self_signed() -> tuple[str, str]:
    """(certificate, key) as PEM, for loopback; its own authority, as kubeconfigs of small clusters have it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pratique sandbox")])
    begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(HOST))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=365 * YEARS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


def _context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tls.pem"
        path.touch(mode=0o600)
        path.write_text(certificate + key)
        context.load_cert_chain(path)
    return context
