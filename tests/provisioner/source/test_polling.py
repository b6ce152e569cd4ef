"""What a look at an image tag or at an address sees, how little it reads for that, and where it does not go."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from provisioner.errors import BadSource, BundleTooLarge, PratiqueError, SourceUnavailable, Unreachable
from provisioner.source import GitSource, HttpSource, ImageSource, Polled, poll
from tests.provisioner.source.places import sha256
from tests.support.servers.hostile import HASTY, HERE, MAX
from tests.support.servers.http import Asked, FileServer, Reply
from tests.support.servers.registry import Registry


def test_a_url_is_read_again_only_if_its_etag_differs(web: FileServer) -> None:
    url = web.serve("/a.yaml", b"one", headers={"ETag": '"1"'})
    first = poll(HttpSource(url), egress=HERE, max_bytes=MAX)
    assert first == Polled(sha256(b"one"), '"1"')

    def answer(asked: Asked) -> Reply:
        return Reply(status=304) if asked.headers.get("if-none-match") == '"1"' else Reply(b"two")

    web.serve_reply("/a.yaml", answer)
    assert poll(HttpSource(url), egress=HERE, max_bytes=MAX, known=first) is first
    # A server that knows no conditions, but says the same name.
    web.serve("/a.yaml", b"not read", headers={"ETag": '"1"'})
    assert poll(HttpSource(url), egress=HERE, max_bytes=MAX, known=first) is first
    web.serve("/a.yaml", b"two", headers={"ETag": 'W/"2"'})
    assert poll(HttpSource(url), egress=HERE, max_bytes=MAX, known=first) == Polled(sha256(b"two"))


def test_an_unasked_304_is_no_answer(web: FileServer) -> None:
    url = web.serve("/a.yaml", status=304)
    with pytest.raises(BadSource, match="answered 304"):
        poll(HttpSource(url), egress=HERE, max_bytes=MAX, known=Polled(sha256(b"one")))


def test_a_tag_that_stays_costs_one_head(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ImageSource(f"{registry.host}/polled:stable", insecure_http=True)
    digest = registry.push(source.ref, {"a.yaml": b"kind: A\n"})
    known = poll(source, egress=HERE, max_bytes=MAX)
    assert known == Polled(digest)
    with monkeypatch.context() as patched:
        patched.setattr("provisioner.source.client.SourceClient.get", None)
        assert poll(source, egress=HERE, max_bytes=MAX, known=known) is known
    moved = registry.push(source.ref, {"a.yaml": b"kind: B\n"})
    assert poll(source, egress=HERE, max_bytes=MAX, known=known) == Polled(moved)


def test_the_digest_that_a_registry_claims_in_a_header_is_not_believed(web: FileServer) -> None:
    body = b'{"schemaVersion": 2, "layers": []}'
    count = itertools.count()

    def answer(asked: Asked) -> Reply:
        if asked.method == "HEAD":
            return Reply(body, headers={"Docker-Content-Digest": sha256(str(next(count)).encode())})
        return Reply(body)

    web.serve_reply("/v2/team/app/manifests/stable", answer)
    source = ImageSource(f"{web.url.removeprefix('http://')}/team/app:stable", insecure_http=True)
    first = poll(source, egress=HERE, max_bytes=MAX)
    assert poll(source, egress=HERE, max_bytes=MAX, known=first) == first == Polled(sha256(body))


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 65536


def dripping() -> Iterator[bytes]:
    while True:
        time.sleep(0.05)
        yield b"x"


def to_metadata(web: FileServer) -> str:
    return web.serve("/a.yaml", status=302, headers={"Location": "http://169.254.169.254/latest/meta-data"})


def without_end(web: FileServer) -> str:
    return web.serve_reply("/a.yaml", Reply(endless()))


def drop_by_drop(web: FileServer) -> str:
    return web.serve_reply("/a.yaml", Reply(dripping()))


def gone(web: FileServer) -> str:
    return web.serve("/a.yaml", status=404)


def in_circles(web: FileServer) -> str:
    return web.serve("/a.yaml", status=302, headers={"Location": "/a.yaml"})


def a_megabyte_of_etag(web: FileServer) -> str:
    return web.serve("/a.yaml", b"one", headers={"ETag": f'"{"x" * 1024 * 1024}"'})


def a_thousand_headers(web: FileServer) -> str:
    return web.serve("/a.yaml", b"one", headers={f"X-{number}": "x" for number in range(1000)})


@pytest.mark.parametrize(
    ("serve", "error", "words"),
    [
        (to_metadata, BadSource, "leads to 169.254.169.254"),
        (without_end, BundleTooLarge, "more than 1048576 bytes"),
        (drop_by_drop, Unreachable, "not finished within 1 s"),
        (gone, SourceUnavailable, "answered 404"),
        (in_circles, BadSource, "redirects"),
        (a_megabyte_of_etag, Unreachable, "broke off"),
        (a_thousand_headers, Unreachable, "broke off"),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_S18_a_look_is_bounded_and_goes_nowhere_that_fetching_would_not(
    web: FileServer, serve: Callable[[FileServer], str], error: type[PratiqueError], words: str
) -> None:
    with pytest.raises(error, match=words):
        poll(HttpSource(serve(web)), egress=HASTY, max_bytes=1024 * 1024)


def test_an_etag_that_is_too_long_to_keep_is_none(web: FileServer) -> None:
    url = web.serve("/a.yaml", b"one", headers={"ETag": f'"{"x" * 501}"'})
    assert poll(HttpSource(url), egress=HERE, max_bytes=MAX) == Polled(sha256(b"one"))


def test_a_server_that_is_asked_too_often_says_how_long_to_wait(web: FileServer) -> None:
    url = web.serve("/a.yaml", status=429, headers={"Retry-After": "99999999"})
    with pytest.raises(Unreachable, match="answered 429") as caught:
        poll(HttpSource(url), egress=HERE, max_bytes=MAX)
    assert caught.value.retry_after_seconds == 99999999.0


def header_by_header(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in itertools.count():
        time.sleep(0.05)
        connection.sendall(f"X-{number}: x\r\n".encode())


def refs_without_end(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n")
    connection.sendall(b"001e# service=git-upload-pack\n0000")
    line = f"{'1' * 40} refs/heads/{'x' * 200}\n".encode()
    while True:
        connection.sendall(f"{len(line) + 4:04x}".encode() + line)


@pytest.mark.parametrize(
    ("talk", "kind", "error", "words"),
    [
        (header_by_header, "http", Unreachable, "not finished within 1 s|broke off"),
        (refs_without_end, "git", BundleTooLarge, "sends more than 1048576 bytes"),
    ],
    ids=["slow headers", "endless references"],
)
def test_S26_a_server_that_never_ends_is_left(
    speaker: Callable[[Callable[..., None]], str],
    talk: Callable[..., None],
    kind: str,
    error: type[PratiqueError],
    words: str,
) -> None:
    host = speaker(talk)
    source = HttpSource(f"http://{host}/a.yaml") if kind == "http" else GitSource(f"http://{host}/a.git", branch="main")
    with pytest.raises(error, match=words):  # of references the number counts, however long a busy machine needs
        poll(source, egress=HASTY if kind == "http" else HERE, max_bytes=1024 * 1024)


@pytest.mark.parametrize(
    ("source", "is_so"),
    [
        (ImageSource("example.com/a:1"), True),
        (ImageSource("example.com/a"), True),
        (ImageSource(f"example.com/a:1@sha256:{'0' * 64}"), False),
        (GitSource("https://example.com/a", branch="main"), True),
        (GitSource("https://example.com/a", commit="0" * 40), False),
        (HttpSource("https://example.com/a"), True),
        (HttpSource("https://example.com/a", checksum=f"sha256:{'0' * 64}"), False),
    ],
    ids=str,
)
def test_what_is_pinned_does_not_float(source: ImageSource | GitSource | HttpSource, is_so: bool) -> None:
    assert source.is_floating(HERE) is is_so


def test_a_url_without_a_checksum_floats_only_where_the_operator_allows_it() -> None:
    assert not HttpSource("https://example.com/a").is_floating(replace(HERE, allow_mutable=False))
