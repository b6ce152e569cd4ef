"""A git server, met by dulwich over our own connections (https) or an ssh program kept on a short lead."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key
from dulwich.client import SSHGitClient, SSHVendor, SubprocessWrapper, Urllib3HttpGitClient
from dulwich.errors import GitProtocolError, HangupException, NotGitRepository
from urllib3 import PoolManager
from urllib3.exceptions import HTTPError

from provisioner.errors import BadBundle, BadSource, BundleTooLarge, PratiqueError, SourceUnavailable, Unreachable
from provisioner.source.client import CONNECT_SECONDS, SourceClient
from provisioner.source.egress import EgressPolicy, Origin, resolve, shown
from provisioner.source.git_addresses import place_of_repository, shown_repository, url_of_repository
from provisioner.source.source_type import Credentials

SSH_USER = re.compile(r"[A-Za-z0-9_][\w.-]{0,63}", re.ASCII)
SSH_PATH = re.compile(r"/?[A-Za-z0-9._~@+/-]{1,1024}")
LONGEST_LAST_WORDS = 300
REFUSAL = re.compile(rb"[0-9a-f]{4}ERR ([^\n]{1,200})")
MAX_LOG_BYTES = 8192
ENDING_SECONDS = 2.0
STATUS_OF_SSH_ITSELF = 255
# What ssh logs where trying again gives the same answer, the more telling first.
REFUSALS = (
    ("HOST IDENTIFICATION HAS CHANGED", "the host shows another key than known_hosts has"),
    ("Host key verification failed", "known_hosts has no key of this host"),
    ("no matching", "the host and our ssh have no algorithm in common"),
    ("Too many authentication failures", "the host does not accept the private key"),
)
COMMITS_ONLY = b"tree:0"
LONGEST_MESSAGE = 200
# What dulwich's reading of a server that does not speak git can end in.
NONSENSE = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
Wants = Callable[..., list[bytes]]


class Remote:
    """One repository on a server. Each `fetch` is a connection of its own."""

    def __init__(self, client: Any, path: str, where: str, counter: Counter):
        self.shown = where
        self._client = client
        self._path = path
        self._counter = counter

    def fetch(self, wants: Wants, *, depth: int | None, prefixes: Sequence[str], known: str = "") -> bytes:
        """The pack that holds what `wants(refs)` answers; raises the errors of dulwich and ours.

        With a commit that is `known`, the commits that lead there from it, without files where the server can do that.
        """
        pack = io.BytesIO()
        named = [prefix.encode() for prefix in prefixes]
        more = {"filter_spec": COMMITS_ONLY} if known else {}
        has = _Known(known) if known else _NothingYet()
        with self._explained():
            self._client.fetch_pack(self._path, wants, has, pack.write, depth=depth, ref_prefix=named, **more)
        return pack.getvalue()

    def refs(self, prefix: str) -> dict[str, str]:
        """What the references that begin with `prefix` point to; a tag's commit stands under its name and `^{}`."""
        with self._explained():
            found = self._client.get_refs(self._path.encode(), ref_prefix=[prefix.encode()]).refs
        return {
            _decode(name): _decode(value) for name, value in found.items() if value and _decode(name).startswith(prefix)
        }

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except HangupException as exc:
            # dulwich reads over the line in which a server of protocol 2 says why it hangs up.
            if words := self._counter.refusal():
                raise GitProtocolError(words) from exc
            raise

    def last_words(self) -> str:
        """What the program between us and the server says of a failure, after a blank; "" if nothing."""
        return ""

    def check_refusal(self) -> None:
        """Raise BadSource if trying again would give the same answer, though it looks like a broken connection."""


class _SshRemote(Remote):
    def __init__(self, ssh: _Ssh, client: Any, path: str, where: str):
        super().__init__(client, path, where, ssh.counter)
        self._ssh = ssh

    def last_words(self) -> str:
        words = self._ssh.last_words()
        return f" (ssh: {words!r})" if words else ""

    def check_refusal(self) -> None:
        if words := self._ssh.refusal():
            raise BadSource(f"{self.shown}: {words}")


class Counter:
    """The bytes that a server may send in all, references and progress included."""

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self._latest = b""
        self.seen = 0

    def bounded(self, read: Callable[..., bytes]) -> Callable[..., bytes]:
        def counted(size: int = -1) -> bytes:
            data = read(size)
            self.seen += len(data)
            self._latest = (self._latest + data[-LONGEST_LAST_WORDS:])[-LONGEST_LAST_WORDS:]
            if self.seen > self._max_bytes:
                raise BundleTooLarge(f"sends more than {self._max_bytes} bytes (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)")
            return data

        return counted

    def refusal(self) -> str:
        """The reason with which the server ended the conversation; "" if it gave none."""
        found = REFUSAL.search(self._latest)
        return found[1].decode("utf-8", "replace").strip() if found else ""


class _NothingYet:
    """dulwich's question what we have already."""

    shallow: frozenset[bytes] = frozenset()

    def __next__(self) -> bytes | None:
        return None

    def ack(self, sha: bytes) -> None:
        """Nothing was offered, so nothing can be acknowledged."""

    def nak(self) -> None:
        """As expected."""


class _Known(_NothingYet):
    """As `_NothingYet`, with one commit that we say we have."""

    def __init__(self, commit: str):
        self._left = [commit.encode()]

    def __next__(self) -> bytes | None:
        return self._left.pop() if self._left else None


def _decode(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace")


@contextmanager
def connected(
    repository: str, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int, *, thin_packs: bool = True
) -> Iterator[Remote]:
    """The remote that a repository's URL means, with what goes wrong there as errors of ours.

    `thin_packs`: what it sends may lean on objects that we say we have. Some servers insist on that. Raises BadSource
    for a kind of URL that is not fetched from.
    """
    where, place = shown_repository(repository), place_of_repository(repository)
    with (
        SourceClient(egress, place, credentials) as client,
        _remote_of(repository, client, credentials, Counter(max_bytes), thin_packs=thin_packs) as remote,
    ):
        try:
            yield remote
        except (*NONSENSE, GitProtocolError, NotGitRepository, OSError) as exc:
            client.deadline.check(where)
            remote.check_refusal()
            raise _problem(exc, where, remote) from exc
        except BadBundle as exc:
            raise type(exc)(f"{where}: {exc}") from exc


@contextmanager
def _remote_of(
    repository: str, client: SourceClient, credentials: Credentials | None, counter: Counter, *, thin_packs: bool
) -> Iterator[Remote]:
    where = shown_repository(repository)
    url, place = url_of_repository(repository), place_of_repository(repository)
    if place.scheme != "ssh":
        http = _HttpRemote(client, place, credentials, counter, thin_packs=thin_packs)
        yield Remote(http, urlsplit(url).path, where, counter)
        return
    with tempfile.TemporaryDirectory(prefix="pratique-ssh-") as folder:
        ssh = _Ssh(client, place, Path(folder), counter, thin_packs=thin_packs)
        ssh.write_keys(credentials)
        # As git itself has it: without a scheme the path begins at the user's home.
        path = urlsplit(url).path if url == repository else urlsplit(url).path.removeprefix("/")
        try:
            yield _SshRemote(ssh, ssh.remote(urlsplit(url).username or "git", path), path, where)
        finally:
            ssh.end()


def _problem(exc: Exception, where: str, remote: Remote) -> PratiqueError:
    if isinstance(exc, NotGitRepository):
        return SourceUnavailable(f"{where}: there is no git repository")
    if isinstance(exc, HangupException):
        return Unreachable(f"{where}: the server hung up{remote.last_words()}")
    if isinstance(exc, GitProtocolError):
        return BadSource(f"{where}: git failed: {str(exc)[:LONGEST_MESSAGE]!r}{remote.last_words()}")
    if isinstance(exc, OSError):
        return Unreachable(f"{where}: the connection broke off ({exc.strerror}){remote.last_words()}")
    return BadSource(f"{where}: the server does not speak git as expected ({type(exc).__name__})")


class _HttpRemote(Urllib3HttpGitClient):
    """dulwich over our client: every request and redirect is checked, every byte counted, passwords stay at home."""

    def __init__(
        self,
        client: SourceClient,
        place: Origin,
        credentials: Credentials | None,
        counter: Counter,
        *,
        thin_packs: bool,
    ):
        # The pool manager is never asked: all requests go through `_http_request`.
        super().__init__(f"{place.scheme}://{place}", pool_manager=PoolManager(), thin_packs=thin_packs)
        self._ours = client
        self._place = place
        self._secret = credentials.authorization_for(place) if credentials else {}
        self._counter = counter

    def _http_request(
        self, url: str, headers: dict[str, str] | None = None, data: Any = None, raise_for_status: bool = True
    ) -> tuple[Any, Callable[..., bytes]]:
        body = data if data is None or isinstance(data, bytes) else b"".join(data)
        sent = {"User-Agent": "git/pratique"} | (headers or {}) | self._secret
        response: Any
        response, final = self._ours.open(
            "GET" if data is None else "POST", url, own=self._place, headers=sent, body=body
        )
        self._check_status(response, final)
        response.content_type = response.headers.get("Content-Type")
        if not str(response.content_type).startswith("application/x-git-"):
            response.close()
            raise BadSource(f"{shown(final)}: does not speak git's smart protocol; expected a git server")
        response.redirect_location = final if final != url else ""
        return response, self._counter.bounded(self._ours.deadline.paced(self._read_of(response, final)))

    def _check_status(self, response: Any, url: str) -> None:
        if response.status == 200:
            return
        response.close()
        if response.status in (401, 403):
            has_shown = self._secret or self._ours.has_client_certificate
            known = "the given credentials do not fit" if has_shown else f"no credentials for {self._place} were given"
            raise SourceUnavailable(f"{shown(url)}: the server answered {response.status}: {known}")
        if response.status == 404:
            raise NotGitRepository
        raise BadSource(f"{shown(url)}: the server answered {response.status}; expected 200")

    def _read_of(self, response: Any, url: str) -> Callable[[int], bytes]:
        def read(size: int) -> bytes:
            try:
                data = bytes(response.read(size if size >= 0 else None))
            except HTTPError as exc:
                raise self._ours.problem(exc, url) from exc
            # A connection that we ended ourselves looks like the end of the answer.
            self._ours.deadline.check(shown(url))
            return data

        return read


class _Ssh(SSHVendor):
    """The ssh program with nothing of this machine's configuration, to the very address that was checked."""

    def __init__(self, client: SourceClient, place: Origin, folder: Path, counter: Counter, *, thin_packs: bool):
        self._client = client
        self._place = place
        self._folder = folder
        self._log = folder / "log"
        self._key = ""
        self._running: list[subprocess.Popen[bytes]] = []
        self._thin_packs = thin_packs
        self.counter = counter

    def write_keys(self, credentials: Credentials | None) -> None:
        """Put the key and the known hosts where ssh can read them; raises BadSource if there are none for this host."""
        if credentials is None or not credentials.ssh_private_key or not credentials.are_for(self._place):
            raise BadSource(f"{self._place}: ssh needs a private key that is for this host, and none was given")
        if not credentials.ssh_known_hosts.strip():
            raise BadSource(f"{self._place}: ssh needs the host's public key (known_hosts), and none was given")
        self._key = credentials.ssh_private_key
        for name, text in (("key", credentials.ssh_private_key), ("known_hosts", credentials.ssh_known_hosts)):
            with os.fdopen(os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text.rstrip("\n") + "\n")

    def remote(self, user: str, path: str) -> Any:
        if not SSH_USER.fullmatch(user) or not SSH_PATH.fullmatch(path):
            raise BadSource(f"{self._place}: the user or the path holds a character that ssh URLs may not hold")
        return SSHGitClient(
            self._place.host, port=self._place.port, username=user, vendor=self, thin_packs=self._thin_packs
        )

    def run_command(  # noqa: PLR0913, PLR0917 -- the signature is dulwich's
        self,
        host: str,
        command: bytes,
        username: str | None = None,
        port: int | None = None,
        password: str | None = None,
        key_filename: str | None = None,
        ssh_command: str | None = None,
        protocol_version: int | None = None,
    ) -> SubprocessWrapper:
        """dulwich's call: start `command` on the host."""
        program = shutil.which("ssh")
        if program is None:
            raise BadSource(f"{self._place}: there is no ssh program on this machine; use https or install it")
        address = resolve(self._place.host, self._place.port, self._client.policy, self._client.deadline.left)[0]
        settings = self._settings(address, protocol_version or 0)
        arguments = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        running = subprocess.Popen(  # noqa: S603 -- a fixed program; user, host and path are checked and stand after --
            [program, "-F", os.devnull, "-T", "-x", "-E", str(self._log), *arguments,
             "-p", str(self._place.port), "-l", str(username), "--", self._place.host, command.decode()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._folder), "LC_ALL": "C"},
        )  # fmt: skip
        self._running.append(running)
        self._client.deadline.at_end(running.kill)
        wrapper = SubprocessWrapper(running)
        wrapper.read = self.counter.bounded(self._client.deadline.paced(wrapper.read))
        return wrapper

    def last_words(self) -> str:
        """What the program logged last, as one line; "" if nothing."""
        lines = [line.strip() for line in self._logged().split("\n")]
        return next((line[:LONGEST_LAST_WORDS] for line in reversed(lines) if line), "")

    def refusal(self) -> str:
        """Why host and keys do not fit together, or the host has no such repository; "" if it is neither."""
        status = None  # of the latest program, where it has ended
        with suppress(subprocess.TimeoutExpired):
            status = self._running[-1].wait(ENDING_SECONDS) if self._running else None
        logged = self._logged()
        if "Permission denied" in logged:
            return _flaw_of(self._key) or "the host does not accept the private key"
        if words := next((words for sign, words in REFUSALS if sign in logged), ""):
            return words
        if status not in (None, 0, STATUS_OF_SSH_ITSELF) and not self.counter.seen:
            return f"there is no git repository that this key may read (its command ended with status {status})"
        return ""

    def _logged(self) -> str:
        if not self._log.exists():
            return ""
        text = self._log.read_bytes()[-MAX_LOG_BYTES:].decode("utf-8", "replace")
        return text.replace(f"{self._folder}/", "")

    def end(self) -> None:
        for running in self._running:
            running.kill()
            running.wait()
            for pipe in (running.stdin, running.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def _settings(self, address: str, protocol_version: int) -> dict[str, str]:
        named = self._place.host if self._place.port == 22 else f"[{self._place.host}]:{self._place.port}"
        return {
            "HostName": address,
            "HostKeyAlias": named,
            "CheckHostIP": "no",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(self._folder / "known_hosts"),
            "GlobalKnownHostsFile": os.devnull,
            "UpdateHostKeys": "no",
            "IdentityFile": str(self._folder / "key"),
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "PreferredAuthentications": "publickey",
            "BatchMode": "yes",
            "ClearAllForwardings": "yes",
            "ControlMaster": "no",
            "ControlPath": "none",
            "ProxyCommand": "none",
            "ConnectTimeout": str(int(CONNECT_SECONDS)),
            "LogLevel": "ERROR",
            **({"SetEnv": f"GIT_PROTOCOL=version={protocol_version}"} if protocol_version else {}),
        }


def _flaw_of(key: str) -> str:
    """What makes a private key unusable here whatever the host thinks of it; "" if nothing that we know."""
    load = load_ssh_private_key if "OPENSSH" in key else load_pem_private_key
    try:
        load(key.encode(), None)
    except TypeError:
        return "the private key has a passphrase; expected one without"
    except UnsupportedAlgorithm:
        return ""
    except ValueError:
        return "the private key cannot be read; expected the text of an OpenSSH or PEM file"
    return ""
