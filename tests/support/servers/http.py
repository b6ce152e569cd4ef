"""Small HTTP servers inside the test process: files over http and https, and git over its own CGI program."""

from __future__ import annotations

import base64
import datetime
import gzip
import ipaddress
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived; `path` without its query, header names in lower case.

    `client` is the name in the client's certificate, "" where it showed none.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    client: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answers; a body that is not bytes is sent piece by piece, without a length, as long as it lasts."""

    body: bytes | Iterable[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority of our own and the server certificate that it signed for 127.0.0.1 and localhost."""

    ca_file: Path
    chain_file: Path
    key_file: Path

    @property
    def ca_pem(self) -> str:
        return self.ca_file.read_text()

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain_file, self.key_file)
        return context


def make_authority(folder: Path) -> Authority:
    """Write `ca.crt`, `server.crt` and `server.key` (PEM) into `folder`."""
    ca_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Pratique test authority")])
    ca = _certificate(ca_name, ca_name, ca_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    server = (
        _certificate(server_name, ca_name, server_key.public_key())
        .add_extension(names, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    made = Authority(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    made.ca_file.write_bytes(ca.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    made.chain_file.write_bytes(server.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    made.key_file.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made


def _certificate(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


class _Handler(BaseHTTPRequestHandler):
    """Reads a request whole and sends what its server's `answer` says."""

    protocol_version = "HTTP/1.1"
    answer: ClassVar[Callable[[Asked], Reply]]

    def __getattr__(self, name: str) -> Any:
        if name.removeprefix("do_") in METHODS:
            return self._serve
        raise AttributeError(name)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: what was asked is kept by who answers."""

    def _serve(self) -> None:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, unquote(url.path), url.query, headers, self._body(self.headers), self._client())
        self._send(type(self).answer(asked))

    def _client(self) -> str:
        shown = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        names = [dict(part) for part in (shown or {}).get("subject", ())]
        return next((str(name["commonName"]) for name in names if "commonName" in name), "")

    def _body(self, headers: Message) -> bytes:
        if "chunked" in headers.get("Transfer-Encoding", ""):
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(headers.get("Content-Length") or 0))

    def _chunk(self) -> bytes:
        chunk = self.rfile.read(int(self.rfile.readline().split(b";")[0], 16))
        self.rfile.readline()
        return chunk

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        named = {name.lower() for name in reply.headers}
        pieces = [reply.body] if isinstance(reply.body, bytes) else reply.body
        if isinstance(reply.body, bytes) and "content-length" not in named:
            self.send_header("Content-Length", str(len(reply.body)))
        elif not isinstance(reply.body, bytes):
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            for piece in pieces:
                self.wfile.write(piece)
        except (BrokenPipeError, ConnectionResetError):  # a client that had enough
            self.close_connection = True


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that hangs up or refuses our certificate is part of many tests."""


class Listening:
    """A server on 127.0.0.1 that answers with `answer(asked)`; over TLS where it has an authority, by default on a free port."""

    def __init__(self, answer: Callable[[Asked], Reply], authority: Authority | None = None, port: int = 0) -> None:
        handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
        self._server = _Listener(("127.0.0.1", port), handler)
        if authority is not None:
            # The handshake belongs to the connection's own thread: a client that never speaks must not block the rest.
            self._server.socket = authority.server_context().wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.host = f"127.0.0.1:{self._server.server_port}"
        self.url = f"{'https' if authority else 'http'}://{self.host}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class FileServer:
    """Serves what `serve` and `serve_folder` were given, under the same paths over `url` (http) and `https_url`.

    `asked` lists every request that arrived, unknown paths (404) included.
    """

    def __init__(self, authority: Authority) -> None:
        self.authority = authority
        self.asked: list[Asked] = []
        self._replies: dict[str, Reply | Callable[[Asked], Reply]] = {}
        self._plain = Listening(self._answer)
        self._tls = Listening(self._answer, authority)
        self.url = self._plain.url
        self.https_url = self._tls.url

    def serve(
        self, path: str, body: bytes = b"", *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> str:
        """Answer `path` (starts with /) so from now on; returns its http URL."""
        return self.serve_reply(path, Reply(body, status, headers or {}))

    def serve_reply(self, path: str, reply: Reply | Callable[[Asked], Reply]) -> str:
        """As `serve`, with a whole reply, or a function that makes one of each request; returns the http URL."""
        self._replies[path] = reply
        return self.url + path

    def serve_folder(self, folder: Path, prefix: str = "") -> str:
        """Serve the files that `folder` holds now under `prefix`; returns the http URL of the folder."""
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            self.serve(f"{prefix}/{file.relative_to(folder).as_posix()}", file.read_bytes())
        return f"{self.url}{prefix}/"

    def forget(self) -> None:
        """Serve nothing and have been asked nothing, as at the start."""
        self._replies.clear()
        self.asked.clear()

    def stop(self) -> None:
        self._plain.stop()
        self._tls.stop()

    def _answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        reply = self._replies.get(asked.path, Reply(b"not found\n", 404))
        return reply if isinstance(reply, Reply) else reply(asked)


# Nothing of the person who runs the tests: no configuration, no hooks, no signing, always the same author.
GIT_ENV = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
       for what, value in (("NAME", "Tester"), ("EMAIL", "tester@example.com"), ("DATE", "2026-01-02T03:04:05Z"))},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Repository:
    """A bare repository behind the git server; `url` is what a client clones."""

    path: Path
    url: str

    def commit(self, files: Mapping[str, bytes | str], *, branch: str = "main", message: str = "change") -> str:
        """Make `branch` hold exactly `files` (whole tree, by path) in one new commit; returns its hash."""
        stream = [f"commit refs/heads/{branch}\n{_author(message)}".encode()]
        if self.has(branch):
            stream.append(f"from refs/heads/{branch}^0\n".encode())
        stream.append(b"deleteall\n")
        for path, content in sorted(files.items()):
            raw = content.encode() if isinstance(content, str) else content
            stream.append(f'M 100644 inline "{path}"\ndata {len(raw)}\n'.encode() + raw + b"\n")
        self.git("fast-import", "--quiet", "--force", stdin=b"".join(stream))
        return self.resolve(branch)

    def point(self, ref: str, commit: str) -> None:
        """Move (or make) the full ref, e.g. refs/tags/v1, to `commit`."""
        self.git("update-ref", ref, commit)

    def tag(self, name: str, commit: str, *, message: str | None = None) -> None:
        """Make or move tag `name`; an annotated one where it has a message."""
        annotation = ["-a", "-m", message] if message else []
        self.git("tag", "--force", *annotation, name, commit)

    def resolve(self, ref: str) -> str:
        """The full hash of the commit that `ref` names."""
        return self.git("rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()

    def has(self, branch: str) -> bool:
        return bool(self.git("for-each-ref", f"refs/heads/{branch}"))

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git in the repository; returns what it printed."""
        command = ["git", "-C", str(self.path), *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, env=GIT_ENV, check=False)
        if done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout


def _author(message: str) -> str:
    text = message.encode()
    return f"committer Tester <tester@example.com> 1767323045 +0000\ndata {len(text)}\n{message}\n"


class GitServer:
    """Repositories over smart HTTP, by git's own `http-backend`; with `credentials` (user, password), Basic auth."""

    def __init__(
        self, folder: Path, credentials: tuple[str, str] | None = None, authority: Authority | None = None
    ) -> None:
        self.folder = folder
        self.asked: list[Asked] = []
        self._credentials = credentials
        exec_path = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip()
        self._backend = str(Path(exec_path) / "git-http-backend")
        self._listening = Listening(self._answer, authority)
        self.url = self._listening.url

    def repository(self, name: str) -> Repository:
        """A new, empty repository `name` (without .git) whose exact commits may be fetched by hash."""
        made = Repository(self.folder / f"{name}.git", f"{self.url}/{name}.git")
        made.path.mkdir(parents=True)
        made.git("init", "--quiet", "--bare", "--initial-branch=main")
        made.git("config", "uploadpack.allowAnySHA1InWant", "true")
        made.git("config", "uploadpack.allowFilter", "true")
        return made

    def stop(self) -> None:
        self._listening.stop()

    def _answer(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if self._credentials is not None:
            wanted = base64.b64encode(":".join(self._credentials).encode()).decode()
            if asked.headers.get("authorization") != f"Basic {wanted}":
                return Reply(b"", 401, {"WWW-Authenticate": 'Basic realm="git"'})
        body = gzip.decompress(asked.body) if asked.headers.get("content-encoding") == "gzip" else asked.body
        env = {
            **GIT_ENV,
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": asked.headers.get("git-protocol", ""),
            "REQUEST_METHOD": asked.method,
            "PATH_INFO": asked.path,
            "QUERY_STRING": asked.query,
            "CONTENT_TYPE": asked.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
        }
        done = subprocess.run([self._backend], input=body, capture_output=True, env=env, check=False)
        return _reply_of_cgi(done.stdout)


def _reply_of_cgi(output: bytes) -> Reply:
    head, separator, body = output.partition(b"\r\n\r\n")
    if not separator:
        return Reply(b"git http-backend failed\n", 500)
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    return Reply(body, int(headers.pop("Status", "200").split()[0]), headers)
