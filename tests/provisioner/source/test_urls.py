"""Bundles by URL: checksums, redirects, credentials, and servers that mean harm (S08, S18)."""

from __future__ import annotations

import base64
import contextlib
import gzip
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch, ForbiddenAddress, Unreachable
from provisioner.source import Credentials, EgressPolicy, Fetched, HttpSource, client, fetch
from provisioner.unpack import unpack
from provisioner.values import Archive, Pin
from tests.provisioner.source.places import MIB, MUTABLE, OPEN, STRICT, sha256
from tests.support.servers.http import Asked, FileServer, Listening, Reply
from tests.support.servers.registry import layer_of

BUNDLE = layer_of({"manifests/a.yaml": "kind: A\n"})
SECRET = Credentials(host="127.0.0.1", username="reader", password="open:sesame")
BASIC = "Basic " + base64.b64encode(b"reader:open:sesame").decode()


@pytest.fixture
def server(http_server: FileServer) -> Iterator[FileServer]:
    http_server.forget()
    yield http_server
    http_server.forget()


@pytest.fixture
def listening() -> Iterator[Callable[[Callable[[Asked], Reply]], Listening]]:
    """Start a further server of one's own, on another port: another place."""
    started: list[Listening] = []

    def start(answer: Callable[[Asked], Reply]) -> Listening:
        started.append(Listening(answer))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def raw_server() -> Iterator[Callable[[bytes], str]]:
    """A server that sends exactly these bytes and hangs up; returns its URL."""
    sockets: list[socket.socket] = []

    def start(answer: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        sockets.append(listener)

        def serve() -> None:
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/b.tgz"

    yield start
    for listener in sockets:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def get(
    url: str,
    checksum: str = "",
    *,
    policy: EgressPolicy = MUTABLE,
    credentials: Credentials | None = None,
    max_bytes: int = MIB,
) -> Fetched:
    return fetch(HttpSource(url, checksum, "deps"), egress=policy, credentials=credentials, max_bytes=max_bytes)


def test_a_file_is_fetched_once_and_pinned_to_its_digest(server: FileServer) -> None:
    url = server.serve("/b.tgz", BUNDLE)
    fetched = get(f"{url}?token=hidden", sha256(BUNDLE), policy=OPEN)
    assert fetched.pin == Pin("http", url, sha256(BUNDLE), "deps")
    assert fetched.archives == (Archive("b.tgz", BUNDLE),)
    assert unpack(fetched.archives).files == {"manifests/a.yaml": b"kind: A\n"}
    assert len(server.asked) == 1
    assert server.asked[0].query == "token=hidden"


def test_a_pin_fetches_exactly_that_and_nothing_newer(server: FileServer) -> None:
    url = server.serve("/b.tgz", BUNDLE)
    pin = get(url).pin
    assert fetch(HttpSource(url), egress=OPEN, max_bytes=MIB, pin=pin).archives[0].data == BUNDLE
    server.serve("/b.tgz", b"newer")
    with pytest.raises(DigestMismatch, match=f"expected {pin.digest}"):
        fetch(HttpSource(url), egress=OPEN, max_bytes=MIB, pin=pin)


def test_without_a_checksum_nothing_is_asked_unless_the_operator_allows_it(server: FileServer) -> None:
    url = server.serve("/b.tgz", BUNDLE)
    with pytest.raises(BadSource, match="expected a checksum: .* PRATIQUE_MUTABLE_HTTP"):
        get(url, policy=OPEN)
    assert server.asked == []
    assert get(url).pin.digest == sha256(BUNDLE)


def test_other_bytes_than_the_checksum_s_are_refused(server: FileServer) -> None:
    url = server.serve("/b.tgz", BUNDLE + b"!")
    with pytest.raises(DigestMismatch, match=f"its checksum is {sha256(BUNDLE + b'!')}; expected {sha256(BUNDLE)}"):
        get(url, sha256(BUNDLE))


CHECKSUMS = {
    "md5": "md5:" + "0" * 32,
    "no algorithm": "0" * 64,
    "upper case": "sha256:" + "A" * 64,
    "short": "sha256:" + "0" * 63,
    "a line break after": "sha256:" + "0" * 64 + "\n",
}


@pytest.mark.parametrize("checksum", CHECKSUMS.values(), ids=CHECKSUMS)
def test_a_checksum_is_sha256_in_one_spelling(checksum: str) -> None:
    with pytest.raises(BadSource, match="expected a checksum sha256"):
        get("https://example.com/b.tgz", checksum)


def test_plain_http_is_refused_unless_the_operator_allows_it(server: FileServer) -> None:
    url = server.serve("/b.tgz", BUNDLE)
    with pytest.raises(BadSource, match="expected https; PRATIQUE_PLAIN_HTTP_HOSTS"):
        get(url, policy=replace(MUTABLE, plain_http_hosts=()))
    assert server.asked == []


def test_s18_this_machine_is_refused_by_address_and_by_name(server: FileServer) -> None:
    port = server.serve("/b.tgz", BUNDLE).split(":")[-1]
    for host in ("127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "0.0.0.0", "[::1]", "[::ffff:7f00:1]"):
        with pytest.raises(ForbiddenAddress, match="not a public address"):
            get(f"http://{host}:{port}", policy=replace(STRICT, plain_http_hosts=("*",), allow_mutable=True))
    assert server.asked == []


NAMES = {
    "of the URL": ("/a/app.yaml", "text/plain", "app.yaml"),
    "by its type": ("/a/app", "application/yaml; charset=utf-8", "app.yaml"),
    "JSON by its type": ("/a/app", "application/json", "app.json"),
    "of an encoded URL": ("/a/my%20app.yaml", "text/plain", "my app.yaml"),
    "of a folder": ("/a/", "text/yaml", "bundle.yaml"),
    "no slash smuggled in": ("/a/etc%2Fpasswd.yaml", "text/plain", "passwd.yaml"),
}


@pytest.mark.parametrize(("path", "kind", "name"), NAMES.values(), ids=NAMES)
def test_a_single_file_is_named(server: FileServer, path: str, kind: str, name: str) -> None:
    reply = Reply(b"kind: A\n", headers={"Content-Type": kind})
    for known in ("/a/app.yaml", "/a/app", "/a/my app.yaml", "/a/", "/a/etc/passwd.yaml"):
        server.serve_reply(known, reply)
    assert get(server.url + path).archives[0].name == name


class TestTLS:
    def test_an_unknown_authority_is_refused_in_words(self, server: FileServer) -> None:
        server.serve("/b.tgz", BUNDLE)
        with pytest.raises(BadSource, match="its certificate is not trusted: "):
            get(f"{server.https_url}/b.tgz")
        assert server.asked == []

    def test_the_operator_s_authority_is_trusted(self, server: FileServer) -> None:
        server.serve("/b.tgz", BUNDLE)
        policy = replace(STRICT, allowed_networks=OPEN.allowed_networks, ca_pem=server.authority.ca_pem)
        assert get(f"{server.https_url}/b.tgz", sha256(BUNDLE), policy=policy).archives[0].data == BUNDLE

    def test_the_certificate_must_be_for_the_name(self, server: FileServer) -> None:
        server.serve("/b.tgz", BUNDLE)
        policy = replace(MUTABLE, ca_pem=server.authority.ca_pem)
        port = server.https_url.rpartition(":")[2]
        with pytest.raises(BadSource, match=r"certificate is not trusted: .*127\.1"):
            get(f"https://127.1:{port}/b.tgz", policy=policy)

    def test_a_server_that_speaks_no_tls_is_unreachable(self, server: FileServer) -> None:
        server.serve("/b.tgz", BUNDLE)
        with pytest.raises(Unreachable):
            get(server.url.replace("http:", "https:") + "/b.tgz")


class TestRedirects:
    def test_on_the_same_place_they_are_followed(self, server: FileServer) -> None:
        server.serve("/b.tgz", BUNDLE)
        server.serve("/new", status=307, headers={"Location": "b.tgz"})
        fetched = get(server.serve("/old", status=301, headers={"Location": f"{server.url}/new"}))
        assert fetched.archives[0].data == BUNDLE
        assert fetched.pin.reference == f"{server.url}/old"

    FORBIDDEN = {
        "metadata": "http://169.254.169.254/latest/meta-data/",
        "loopback by name": "http://localhost/",
        "a private host": "http://10.0.0.1/",
        "another host": "https://example.com/b.tgz",
        "a file": "file:///etc/passwd",
        "nonsense": "http://[",
        "credentials": "http://user:hunter2@127.0.0.1/",
    }

    @pytest.mark.parametrize("target", FORBIDDEN.values(), ids=FORBIDDEN)
    def test_s18_to_another_place_they_are_refused(self, server: FileServer, target: str) -> None:
        url = server.serve("/b.tgz", status=302, headers={"Location": target})
        with pytest.raises(BadSource) as caught:
            get(url)
        assert "hunter2" not in str(caught.value)

    def test_s18_a_listed_host_s_address_is_checked_as_well(self, server: FileServer) -> None:
        for target in ("http://169.254.169.254/x", "http://0x7f.1/x", "http://[::ffff:10.0.0.1]/x"):
            url = server.serve("/b.tgz", status=302, headers={"Location": target})
            policy = replace(MUTABLE, allowed_hosts=("169.254.169.254", "0x7f.1", "::ffff:10.0.0.1"))
            only_this = replace(policy, allowed_networks=(OPEN.allowed_networks[0],))
            if target.startswith("http://0x7f"):
                only_this = replace(only_this, plain_http_hosts=("*",))
                with pytest.raises(Unreachable):  # 127.0.0.1 is allowed here, and nobody listens on its port 80
                    get(url, policy=only_this)
                continue
            with pytest.raises(ForbiddenAddress):
                get(url, policy=only_this)

    def test_a_loop_ends(self, server: FileServer) -> None:
        url = server.serve("/b.tgz", status=302, headers={"Location": "/b.tgz"})
        with pytest.raises(BadSource, match="more than 5 redirects"):
            get(url)
        assert len(server.asked) == 6

    def test_one_without_a_location_ends(self, server: FileServer) -> None:
        with pytest.raises(BadSource, match="redirects"):
            get(server.serve("/b.tgz", status=302))

    def test_s08_a_password_stays_at_its_own_place(self, server: FileServer, listening) -> None:
        asked: list[Asked] = []
        other = listening(lambda one: asked.append(one) or Reply(BUNDLE))  # type: ignore[func-returns-value]  # append, then the reply
        url = server.serve("/b.tgz", status=302, headers={"Location": f"{other.url}/b.tgz"})
        policy = replace(MUTABLE, allowed_hosts=(other.host,))
        assert get(url, policy=policy, credentials=SECRET).archives[0].data == BUNDLE
        assert server.asked[0].headers["authorization"] == BASIC
        assert "authorization" not in asked[0].headers

    def test_s08_a_password_is_back_when_the_way_leads_home(self, server: FileServer, listening) -> None:
        server.serve("/home", BUNDLE)
        other = listening(lambda _: Reply(status=302, headers={"Location": f"{server.url}/home"}))
        url = server.serve("/b.tgz", status=302, headers={"Location": f"{other.url}/x"})
        get(url, policy=replace(MUTABLE, allowed_hosts=(other.host,)), credentials=SECRET)
        assert server.asked[-1].headers["authorization"] == BASIC


class TestCredentials:
    OTHERS = {"another host": "example.com", "another port": "127.0.0.1:1", "a suffix": "0.0.1", "none": ""}

    @pytest.mark.parametrize("host", OTHERS.values(), ids=OTHERS)
    def test_s08_those_for_another_place_are_not_sent(self, server: FileServer, host: str) -> None:
        get(server.serve("/b.tgz", BUNDLE), credentials=replace(SECRET, host=host))
        assert "authorization" not in server.asked[0].headers

    def test_those_for_this_place_are_sent(self, server: FileServer) -> None:
        url = server.serve("/b.tgz", BUNDLE)
        for host in ("127.0.0.1", url.split("/")[2]):
            get(url, credentials=replace(SECRET, host=host))
            assert server.asked[-1].headers["authorization"] == BASIC

    def test_they_are_not_in_their_repr(self) -> None:
        secret = Credentials("h", "u", "p4ss", "d0cker", "k3y", "kn0wn")
        assert not any(word in repr(secret) for word in ("p4ss", "d0cker", "k3y"))

    STATUSES = {"not let in": 401, "forbidden": 403, "not there": 404, "gone": 410, "a teapot": 418}

    @pytest.mark.parametrize("status", STATUSES.values(), ids=STATUSES)
    def test_a_refusal_names_the_status_and_neither_password_nor_query(self, server: FileServer, status: int) -> None:
        url = server.serve("/b.tgz", b"token=hunter2", status=status)
        with pytest.raises(BadSource, match=f"answered {status}") as caught:
            get(f"{url}?token=hunter2#hunter2", credentials=SECRET)
        assert not any(word in str(caught.value) for word in ("hunter2", "sesame", BASIC[6:]))

    def test_no_error_of_any_depth_says_a_password_or_query(self, server: FileServer, raw_server) -> None:
        url = server.serve("/slow.tgz", BUNDLE, status=503)
        for bad in (
            url,
            raw_server(b""),
            raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
            "http://127.0.0.1:1/",
        ):
            with pytest.raises(Unreachable) as caught:
                get(f"{bad}?token=hunter2", credentials=SECRET)
            assert not any(word in str(caught.value) for word in ("hunter2", "sesame", BASIC[6:]))


def drops(is_over: threading.Event) -> Iterator[bytes]:
    """One byte after the other, for minutes or until `is_over`, which the last one sets."""
    for _ in range(6000):
        if is_over.wait(0.05):
            return
        yield b"x"
    is_over.set()


class TestServersThatMeanHarm:
    def test_a_busy_one_is_tried_later_when_it_says(self, server: FileServer) -> None:
        soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
        for told, least, most in (
            ("7", 7, 7),
            (soon, 80, 91),
            ("never", 0, 0),
            ("9" * 400, 0, 0),
            ("-5", 0, 0),
            ("\u00b2", 0, 0),
            ("Mon, 01 Jan 2024 00:00:00 +99999999999999", 0, 0),
        ):
            url = server.serve("/b.tgz", status=429, headers={"Retry-After": told})
            with pytest.raises(Unreachable, match="answered 429") as caught:
                get(url)
            assert least <= caught.value.retry_after_seconds <= most

    @pytest.mark.thorough
    def test_one_that_drips_ends_at_the_deadline(self, server: FileServer) -> None:
        is_over = threading.Event()
        url = server.serve_reply("/b.tgz", lambda _: Reply(drops(is_over)))
        with pytest.raises(Unreachable, match="not finished within 1 s"):
            get(url, policy=replace(MUTABLE, timeout_seconds=1))
        assert not is_over.is_set(), "the client left before the last drop"
        is_over.set()

    @pytest.mark.thorough
    def test_one_that_drips_headers_ends_at_the_deadline(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            is_over = threading.Event()

            def serve() -> None:
                with listener.accept()[0] as connection, contextlib.suppress(OSError):
                    for sign in itertools.chain([b"HTTP/1.1 200 OK\r\nX: "], drops(is_over)):
                        connection.send(sign)

            threading.Thread(target=serve, daemon=True).start()
            with pytest.raises(Unreachable, match="not finished within 1 s"):
                get(f"http://127.0.0.1:{listener.getsockname()[1]}/", policy=replace(MUTABLE, timeout_seconds=1))
            assert not is_over.is_set(), "the client left before the last drop"
            is_over.set()

    @pytest.mark.parametrize("where", ["in the head", "in the body"])
    def test_S40_one_that_sends_too_slowly_ends_long_before_the_deadline(
        self,
        where: str,
        server: FileServer,
        speaker: Callable[[Callable[..., None]], str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.3)
        monkeypatch.setattr(client, "LOOK_SECONDS", 0.05)
        is_over = threading.Event()

        def talk(connection: socket.socket) -> None:
            for sign in itertools.chain([b"HTTP/1.1 200 OK\r\nX: "], drops(is_over)):
                connection.send(sign)

        url = (
            f"http://{speaker(talk)}/"
            if where == "in the head"
            else server.serve_reply("/b.tgz", lambda _: Reply(drops(is_over)))
        )
        began = time.monotonic()
        with pytest.raises(Unreachable, match="sends too slowly: less than 4 KiB a second"):
            get(url, policy=replace(MUTABLE, timeout_seconds=60))
        assert time.monotonic() - began < 3
        is_over.set()

    def test_S40_one_that_takes_its_time_and_sends_enough_is_waited_for(
        self, server: FileServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.3)
        monkeypatch.setattr(client, "LOOK_SECONDS", 0.02)

        def slowly() -> Iterator[bytes]:
            for _ in range(6):
                time.sleep(0.1)
                yield b"x" * client.CHUNK_BYTES

        url = server.serve_reply("/b.tgz", lambda _: Reply(slowly()))
        assert len(get(url).archives[0].data) == 6 * client.CHUNK_BYTES

    @pytest.mark.thorough
    def test_one_that_says_nothing_ends_at_the_deadline(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for scheme in ("http", "https"):
                # It never says anything: that there is an answer at all is the deadline's.
                with pytest.raises(Unreachable, match=r"not finished|does not answer"):
                    get(
                        f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/", policy=replace(MUTABLE, timeout_seconds=1)
                    )

    @pytest.mark.thorough
    def test_one_that_redirects_slowly_ends_at_the_same_deadline(self, server: FileServer) -> None:
        def answer(_: Asked) -> Reply:
            time.sleep(0.4)
            return Reply(status=302, headers={"Location": "/b.tgz"})

        url = server.serve_reply("/b.tgz", answer)
        with pytest.raises(Unreachable, match="not finished within 1 s"):
            get(url, policy=replace(MUTABLE, timeout_seconds=1))

    def test_a_body_without_end_stops_at_the_limit(self, server: FileServer) -> None:
        sent = itertools.count()
        url = server.serve_reply("/b.tgz", lambda _: Reply(bytes(64 * 1024) for _ in sent if next(sent) < 10_000))
        with pytest.raises(BundleTooLarge, match=r"more than 1048576 bytes .*PRATIQUE_MAX_BUNDLE_MIB"):
            get(url)
        assert next(sent) < 1000

    def test_a_length_over_the_limit_is_refused_before_it_comes(self, server: FileServer) -> None:
        url = server.serve_reply("/b.tgz", Reply(b"x", headers={"Content-Length": str(50 * MIB)}))
        with pytest.raises(BundleTooLarge):
            get(url)

    def test_the_limit_itself_is_allowed(self, server: FileServer) -> None:
        url = server.serve("/b.tgz", BUNDLE)
        assert get(url, max_bytes=len(BUNDLE)).archives[0].data == BUNDLE
        with pytest.raises(BundleTooLarge):
            get(url, max_bytes=len(BUNDLE) - 1)

    def test_a_body_shorter_than_its_length_is_never_a_bundle(self, raw_server) -> None:
        url = raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nkind: A\n")
        with pytest.raises(Unreachable, match="broke off"):
            get(url)

    def test_a_body_longer_than_its_length_is_not_read_on(self, raw_server) -> None:
        url = raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nkind: A\n")
        assert get(url).archives[0].data == b"kind"
        with pytest.raises(DigestMismatch):
            get(url, sha256(b"kind: A\n"))

    CHUNKS = {
        "a chunk that is cut off": b"64\r\nabc",
        "a length that is no number": b"zz\r\nabc\r\n0\r\n\r\n",
        "no last chunk": b"3\r\nabc\r\n",
    }

    @pytest.mark.parametrize("body", CHUNKS.values(), ids=CHUNKS)
    def test_broken_chunks_are_never_a_bundle(self, raw_server, body: bytes) -> None:
        with pytest.raises(Unreachable, match="broke off"):
            get(raw_server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body))

    NONSENSE = {
        "nothing": b"",
        "no http": b"SSH-2.0-OpenSSH_9.2\r\n",
        "a status that is no number": b"HTTP/1.1 abc OK\r\n\r\n",
        "a thousand headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        "a header of a megabyte": b"HTTP/1.1 200 OK\r\nX: " + b"y" * MIB + b"\r\n\r\n",
    }

    @pytest.mark.parametrize("answer", NONSENSE.values(), ids=NONSENSE)
    def test_nonsense_is_an_error_of_ours(self, raw_server, answer: bytes) -> None:
        with pytest.raises(Unreachable, match="broke off"):
            get(raw_server(answer))

    def test_a_content_encoding_is_not_undone(self, server: FileServer) -> None:
        """A checksum is over what was sent; and a bomb would unpack where nobody counts."""
        bomb = gzip.compress(bytes(8 * MIB))
        url = server.serve("/b.tgz", bomb, headers={"Content-Encoding": "gzip"})
        fetched = get(url, sha256(bomb))
        assert fetched.archives[0].data == bomb
        assert server.asked[0].headers["accept-encoding"] == "identity"

    def test_a_cookie_is_not_sent_back(self, server: FileServer) -> None:
        server.serve("/b.tgz", BUNDLE)
        get(server.serve("/a", status=302, headers={"Location": "/b.tgz", "Set-Cookie": "id=1"}))
        assert "cookie" not in server.asked[-1].headers

    def test_a_proxy_of_the_environment_is_not_used(self, server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
        """It would resolve the name itself, behind the check."""
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        assert get(server.serve("/b.tgz", BUNDLE)).archives[0].data == BUNDLE
