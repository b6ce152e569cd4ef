"""The whole: certificates, users, store, controllers and the HTTPS server, started and stopped together."""

from __future__ import annotations

import base64
import datetime
import functools
import http.server
import ipaddress
import json
import secrets
import socketserver
import ssl
import tempfile
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from provisioner.sandbox import bootstrap
from provisioner.sandbox.access import MASTERS, Access
from provisioner.sandbox.api import Api
from provisioner.sandbox.calls import SandboxAnswer, SandboxCall, StatusRefusal
from provisioner.sandbox.controllers import Controllers
from provisioner.sandbox.kinds import BUILT_IN
from provisioner.sandbox.store import ObjectStore
from provisioner.sandbox.writes import now
from provisioner.values import Identity

MAX_BODY_BYTES = 3 * 1024 * 1024
IDLE_SECONDS = 120
HANDSHAKE_SECONDS = 10


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """TLS is shaken hands in the connection's own thread, so that a slow client holds up nobody."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, answer: Callable[[SandboxCall], SandboxAnswer]
    ):
        super().__init__(address, _Handler)
        self.context = context
        self.answer = answer

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(HANDSHAKE_SECONDS)
        try:
            secure = self.context.wrap_socket(request, server_side=True)
        except (ssl.SSLError, OSError):
            return
        secure.settimeout(IDLE_SECONDS)
        try:
            _Handler(secure, client_address, self)
        finally:
            secure.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes: the second would wait for the acknowledgement of the first, 40 ms a call.
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        return

    def do_GET(self) -> None:
        try:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MAX_BODY_BYTES:
                raise StatusRefusal(
                    413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY_BYTES}"
                )
            headers: dict[str, list[str]] = {}
            for name, value in self.headers.items():
                headers.setdefault(name.lower(), []).append(value)
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            body = self.rfile.read(length) if length else b""
            if len(body) < length:  # who sent it broke off, and may not have meant it
                raise StatusRefusal(400, "BadRequest", "unexpected EOF")
            call = SandboxCall(self.command, parts.path, query, headers, body)
        except StatusRefusal as exc:
            self.close_connection = True
            self._send(SandboxAnswer(exc.code, exc.body()))
            return
        answer = self.server.answer(call)
        if answer.stream is not None:
            self.send_response(answer.code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self._warn(answer)
            self.end_headers()
            self.wfile.flush()
            try:
                for event in answer.stream or ():
                    self._chunk(json.dumps(event).encode() + b"\n")
            except StatusRefusal as exc:
                self._chunk(json.dumps({"type": "ERROR", "object": exc.body()}).encode() + b"\n")
            self.wfile.write(b"0\r\n\r\n")
        else:
            self._send(answer)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the standard library's names

    def _send(self, answer: SandboxAnswer) -> None:
        is_text = isinstance(answer.body, str)
        body = answer.body.encode() if is_text else json.dumps(answer.body).encode()
        self.send_response(answer.code)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(body)))
        self._warn(answer)
        self.end_headers()
        self.wfile.write(body)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _warn(self, answer: SandboxAnswer) -> None:
        for words in answer.warnings:
            quoted = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
            self.send_header("Warning", f'299 - "{quoted}"')


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
        if not self._store.fact("ca"):
            certificate, key = self_signed()
            self._store.remember("ca", certificate)
            self._store.remember("ca key", key)
        self.ca_pem = self._store.fact("ca")
        identities = {self.tokens[user.name]: Identity(user.name, user.groups, user.uid) for user in users}
        access = Access(self._store, identities, self._kept("signing key").encode())
        for place, obj in bootstrap.objects():
            if self._store.get(place) is None:
                meta = {**obj["metadata"], "uid": str(uuid.uuid4()), "creationTimestamp": now()}
                self._store.put(place, {**obj, "metadata": meta})
        context = server_context(self.ca_pem, self._store.fact("ca key"))
        self._server = Server((HOST, port), context, Api(self._store, access).answer)
        self._controllers = Controllers(self._store, {(kind.group, kind.plural) for kind in BUILT_IN})
        # How long `stop` waits at most.
        serve = functools.partial(self._server.serve_forever, poll_interval=0.05)
        self._thread = threading.Thread(target=serve, daemon=True, name="sandbox")
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


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """TLS that shows a certificate, both as PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tls.pem"
        path.touch(mode=0o600)
        path.write_text(certificate + key)
        context.load_cert_chain(path)
    return context


def self_signed() -> tuple[str, str]:
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
