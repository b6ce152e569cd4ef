"""As much of an SSH server (RFC 4251 to 4254) as the real ssh program needs to run git-upload-pack on it."""

from __future__ import annotations

import hashlib
import hmac
import os
import shlex
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.support.servers.hostile import Speaker
from tests.support.servers.http import GIT_ENV

KEX, KEY, CIPHER, MAC = b"curve25519-sha256", b"ssh-ed25519", b"aes128-ctr", b"hmac-sha2-256"
VERSION = b"SSH-2.0-small"
KEXINIT, NEWKEYS, ECDH_INIT, ECDH_REPLY = 20, 21, 30, 31
SERVICE_REQUEST, SERVICE_ACCEPT, AUTH_REQUEST, AUTH_FAILURE, AUTH_SUCCESS, AUTH_PK_OK = 5, 6, 50, 51, 52, 60
GLOBAL_REQUEST, REQUEST_FAILURE, OPEN, OPEN_CONFIRMATION, DATA, EOF, CLOSE, REQUEST, SUCCESS = (
    80, 82, 90, 91, 94, 96, 97, 98, 99,
)  # fmt: skip
WINDOW = 0x7FFFFFFF
MAX_DATA = 16 * 1024


@dataclass(frozen=True, slots=True)
class Key:
    """An Ed25519 key, for a host or a user."""

    private: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def blob(self) -> bytes:
        raw = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        return _string(KEY) + _string(raw)

    @property
    def line(self) -> str:
        """The public key as known_hosts has it after the name of the host."""
        return self.private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()

    @property
    def text(self) -> str:
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def locked_key(passphrase: str) -> str:
    """The text of a private key with a passphrase, as ssh-keygen writes it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(file)], check=True)
        return file.read_text()


@dataclass
class SshServer:
    """Listens on `host`; lets `user` in and nobody else."""

    speaker: Speaker
    host_key: Key
    user: Key
    commands: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.speaker.host

    def known_hosts(self, key: Key | None = None) -> str:
        name, _, port = self.host.rpartition(":")
        return f"[{name}]:{port} {(key or self.host_key).line}\n"


@contextmanager
def ssh_server() -> Iterator[SshServer]:
    made: list[SshServer] = []
    speaker = Speaker(lambda connection: _Conversation(connection, made[0]).hold())
    made.append(SshServer(speaker, Key(), Key()))
    yield made[0]
    speaker.stop()


class _Conversation:
    def __init__(self, connection: socket.socket, server: SshServer):
        self._socket = connection
        self._server = server
        self._in: tuple[CipherContext, bytes] | None = None
        self._out: tuple[CipherContext, bytes] | None = None
        self._seen = self._sent = 0
        self._session = b""
        self._sending = threading.Lock()

    def hold(self) -> None:
        with suppress(EOFError):
            self._exchange_keys()
            self._let_in()
            self._run()

    def _exchange_keys(self) -> None:
        self._socket.sendall(VERSION + b"\r\n")
        client = b"".join(iter(lambda: self._exactly(1), b"\n")).rstrip(b"\r")
        names = [KEX, KEY, CIPHER, CIPHER, MAC, MAC, b"none", b"none", b"", b""]
        ours = bytes([KEXINIT]) + os.urandom(16) + b"".join(map(_string, names)) + bytes(5)
        self._send(ours)
        theirs = self._receive()
        their_point = _Reader(self._until(ECDH_INIT)).string()
        private = X25519PrivateKey.generate()
        point = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        secret = _mpint(private.exchange(X25519PublicKey.from_public_bytes(their_point)))
        key = self._server.host_key
        told = b"".join(map(_string, (client, VERSION, theirs, ours, key.blob, their_point, point)))
        self._session = hashlib.sha256(told + secret).digest()
        signature = _string(KEY) + _string(key.private.sign(self._session))
        self._send(bytes([ECDH_REPLY]) + _string(key.blob) + _string(point) + _string(signature))
        self._send(bytes([NEWKEYS]))
        self._until(NEWKEYS)
        derived = [hashlib.sha256(secret + self._session + letter + self._session).digest() for letter in _letters()]
        self._in = Cipher(algorithms.AES(derived[2][:16]), modes.CTR(derived[0][:16])).decryptor(), derived[4]
        self._out = Cipher(algorithms.AES(derived[3][:16]), modes.CTR(derived[1][:16])).encryptor(), derived[5]

    def _let_in(self) -> None:
        self._until(SERVICE_REQUEST)
        self._send(bytes([SERVICE_ACCEPT]) + _string(b"ssh-userauth"))
        while True:
            request = self._until(AUTH_REQUEST)
            if self._answer(request):
                return

    def _answer(self, request: bytes) -> bool:
        read = _Reader(request)
        _, _, method = read.string(), read.string(), read.string()
        if method != b"publickey":
            return self._refuse()
        is_signed, algorithm, blob = read.byte(), read.string(), read.string()
        signed_part = request[: read.position]
        if blob != self._server.user.blob:
            return self._refuse()
        if not is_signed:
            self._send(bytes([AUTH_PK_OK]) + _string(algorithm) + _string(blob))
            return False
        signature = _Reader(read.string())
        signature.string()
        public: Ed25519PublicKey = self._server.user.private.public_key()
        try:
            public.verify(signature.string(), _string(self._session) + bytes([AUTH_REQUEST]) + signed_part)
        except InvalidSignature:
            return self._refuse()
        self._send(bytes([AUTH_SUCCESS]))
        return True

    def _refuse(self) -> bool:
        self._send(bytes([AUTH_FAILURE]) + _string(b"publickey") + b"\0")
        return False

    def _run(self) -> None:
        opened = _Reader(self._until(OPEN))
        opened.string()
        channel = struct.pack(">I", opened.number())
        self._send(bytes([OPEN_CONFIRMATION]) + channel + struct.pack(">III", 0, WINDOW, 2 * MAX_DATA))
        environment = dict(GIT_ENV)
        while True:
            read = _Reader(self._until(REQUEST))
            read.number()
            kind, wants_reply = read.string(), read.byte()
            if wants_reply:
                self._send(bytes([SUCCESS]) + channel)
            if kind == b"env":
                environment[read.string().decode()] = read.string().decode()
            if kind == b"exec":
                return self._execute(read.string().decode(), environment, channel)

    def _execute(self, command: str, environment: dict[str, str], channel: bytes) -> None:
        self._server.commands.append(command)
        program, folder = shlex.split(command)
        assert program == "git-upload-pack"
        running = subprocess.Popen(
            ["git", "upload-pack", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment, bufsize=0,
        )  # fmt: skip
        threading.Thread(target=self._pass_on, args=(running, channel), daemon=True).start()
        assert running.stdin is not None
        with running, suppress(EOFError, OSError):
            while True:
                packet = self._receive()
                if packet[0] in (EOF, CLOSE):
                    break
                if packet[0] == DATA:
                    running.stdin.write(_Reader(packet[5:]).string())

    def _pass_on(self, running: subprocess.Popen[bytes], channel: bytes) -> None:
        assert running.stdout is not None
        with suppress(OSError, ValueError):
            while data := running.stdout.read(MAX_DATA):
                self._send(bytes([DATA]) + channel + _string(data))
            status = struct.pack(">I", running.wait())
            self._send(bytes([REQUEST]) + channel + _string(b"exit-status") + b"\0" + status)
            self._send(bytes([EOF]) + channel)
            self._send(bytes([CLOSE]) + channel)

    def _until(self, kind: int) -> bytes:
        """What follows the first byte of the next packet of this kind."""
        while True:
            packet = self._receive()
            if packet[0] == kind:
                return packet[1:]
            if packet[0] == GLOBAL_REQUEST:
                self._send(bytes([REQUEST_FAILURE]))

    def _send(self, payload: bytes) -> None:
        padding = 16 - (5 + len(payload)) % 16
        padding += 16 if padding < 4 else 0
        packet = struct.pack(">IB", 1 + len(payload) + padding, padding) + payload + os.urandom(padding)
        with self._sending:
            if self._out:
                cipher, key = self._out
                mac = hmac.digest(key, struct.pack(">I", self._sent) + packet, "sha256")
                packet = cipher.update(packet) + mac
            self._sent += 1
            self._socket.sendall(packet)

    def _receive(self) -> bytes:
        """The payload of the next packet. The ciphers begin anew with NEWKEYS, the numbers never."""
        first = self._exactly(16 if self._in else 4)
        first = self._in[0].update(first) if self._in else first
        (length,) = struct.unpack(">I", first[:4])
        rest = self._exactly(length + 4 - len(first))
        whole = first + (self._in[0].update(rest) if self._in else rest)
        if self._in:
            mac = hmac.digest(self._in[1], struct.pack(">I", self._seen) + whole, "sha256")
            assert hmac.compare_digest(mac, self._exactly(32))
        self._seen += 1
        return whole[5 : len(whole) - whole[4]]

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data


class _Reader:
    def __init__(self, data: bytes):
        self._data = data
        self.position = 0

    def string(self) -> bytes:
        length = self.number()
        self.position += length
        return self._data[self.position - length : self.position]

    def number(self) -> int:
        self.position += 4
        return int(struct.unpack(">I", self._data[self.position - 4 : self.position])[0])

    def byte(self) -> int:
        self.position += 1
        return self._data[self.position - 1]


def _letters() -> list[bytes]:
    return [bytes([letter]) for letter in b"ABCDEF"]


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _mpint(big_endian: bytes) -> bytes:
    data = big_endian.lstrip(b"\0")
    return _string((b"\0" if data and data[0] & 0x80 else b"") + data)
