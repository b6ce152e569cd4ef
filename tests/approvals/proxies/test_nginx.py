"""Behind Debian's nginx, with the shipped configuration and as the manual changes it: who is believed about people."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.encryption.keys import new_key
from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.http import Asked, Listening, Reply
from tests.support.servers.nginx import Nginx
from tests.support.servers.site import Site

pytestmark = pytest.mark.thorough

# It writes one header for each group, and no identifier.
LINES = {
    "name": "lines",
    "networks": ["unix"],
    "api": True,
    "clusters": [{"name": "production", "username": {"prefix": "l:"}, "groups": {"prefix": "l:"}}],
}
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c"}}],
    "current-context": "c",
}
CLEARED = "".join(f'        proxy_set_header X-Remote-{name} "";\n' for name in ("User", "Group", "Uid"))
COOKIE = {"Cookie": "_oauth2_proxy=good"}


def begin(folder: Path, redis: str, proxy: dict[str, Any]) -> Site:
    (folder / "proxies.yaml").write_text(yaml.safe_dump({"proxies": [proxy]}))
    about = {
        "PRATIQUE_TRUSTED_PROXIES": "unix",
        "PRATIQUE_IDENTITY_PROXIES_FILE": str(folder / "proxies.yaml"),
        "PRATIQUE_ENCRYPTION_KEYS": new_key(),
    }
    running = Site(folder, redis, **about)
    (folder / "kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))
    name = proxy["clusters"][0]["name"]
    command = [sys.executable, ROOT / "manage.py", "register_cluster", name, "--kubeconfig", folder / "kubeconfig"]
    subprocess.run(command, check=True, env=running.environment)
    return running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def site(folder: Path, redis: str) -> Iterator[Site]:
    """On a Unix socket, as it is shipped, and on 127.0.0.1, where whoever runs kubectl port-forward would come in."""
    running = begin(folder, redis, declared())
    yield running
    running.stop()


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory, redis: str) -> Iterator[Site]:
    """Behind a proxy that hands on what it gets, and writes one header a group."""
    running = begin(tmp_path_factory.mktemp("careless"), redis, LINES)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def shipped(site: Site) -> Iterator[Nginx]:
    running = Nginx(site.socket)
    yield running
    running.stop()


def declared() -> Any:
    """The proxy of the manual's file."""
    found = re.findall(r"```yaml\n(proxies:\n.*?)```", (ROOT / "docs/operating/signing-in.md").read_text(), re.DOTALL)
    return yaml.safe_load(found[0])["proxies"][0]


def kept(folder: Path, column: str, issuer: str) -> list[str]:
    """What the database has of an issuer's or a proxy's people."""
    query = f"SELECT {column} FROM approvals_kubernetesidentity WHERE issuer = ?"
    with contextlib.closing(sqlite3.connect(folder / "site.sqlite3")) as database:
        return [row[0] for row in database.execute(query, (issuer,))]


def manual() -> list[str]:
    """The pieces of nginx' configuration in the manual."""
    return re.findall(r"```nginx\n(.*?)```", (ROOT / "docs/operating/signing-in.md").read_text(), re.DOTALL)


def sso(asked: Asked) -> Reply:
    """What oauth2-proxy answers to nginx: who the cookie's person is, or that it is nobody's."""
    if asked.path == "/oauth2/auth" and "_oauth2_proxy=good" in asked.headers.get("cookie", ""):
        return Reply(status=202, headers={"X-Auth-Request-User": "ada", "X-Auth-Request-Groups": "platform,night"})
    return Reply(b"sign in at the proxy", 401 if asked.path == "/oauth2/auth" else 200)


@pytest.fixture(scope="module")
def signing(site: Site) -> Iterator[Nginx]:
    """As the manual has it for oauth2-proxy."""
    oauth2_proxy = Listening(sso)
    piece = manual()[0].replace("http://oauth2-proxy:4180", oauth2_proxy.url)
    chat = "        location /chat/ {\n"
    past = "            auth_request off;\n"
    api = f"        location /api/ {{\n{past}            proxy_pass http://pratique;\n        }}\n"
    running = Nginx(site.socket, edits={CLEARED: piece, chat: f"{api}{chat}{past}"})
    yield running
    running.stop()
    oauth2_proxy.stop()


@pytest.fixture(scope="module")
def behind(site: Site) -> Iterator[Nginx]:
    """As the manual has it for a proxy that stands before nginx: it connects from 127.0.0.7."""
    maps = manual()[1].replace("10.20.0.4/32", "127.0.0.7/32")
    passed = manual()[2]
    upstream = "    upstream pratique {\n"
    running = Nginx(site.socket, "127.0.0.7/32", edits={CLEARED: passed, upstream: maps + upstream})
    yield running
    running.stop()


def ask(where: int | Path, *lines: str, path: str = "/sign-in", source: str = "127.0.0.2") -> str:
    """The answer, whole, to a request with these header lines to the letter: at a port, or at a Unix socket."""
    head = "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *lines])
    with _connected(where, source) as sock:
        sock.sendall(f"{head}\r\n\r\n".encode("latin-1"))
        parts = iter(lambda: sock.recv(65536), b"")
        return b"".join(parts).decode()


def _connected(where: int | Path, source: str) -> socket.socket:
    if isinstance(where, int):
        return socket.create_connection(("127.0.0.1", where), timeout=scaled(60), source_address=(source, 0))
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(scaled(60))
    sock.connect(str(where))
    return sock


FORGED: dict[str, tuple[str, ...]] = {
    "the header": ("X-Remote-User: mallory", "X-Remote-Group: platform"),
    "in other letters": ("x-REMOTE-user: mallory",),
    "twice": ("X-Remote-User: mallory", "X-Remote-User: mallory"),
    "with underscores": ("X_Remote_User: mallory",),
    "half with underscores": ("X-Remote_User: mallory",),
    "both": ("X_Remote_User: mallory", "X-Remote-User: mallory"),
    "a space before the colon": ("X-Remote-User : mallory",),
    "folded": ("X-Remote-User:", " mallory"),
    "folded under another": ("Accept: x", "X-Remote-User: mallory"),
    "empty first": ("X-Remote-User:", "X-Remote-User: mallory"),
    "with an address": ("X-Remote-User: mallory", "X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1"),
    "of oauth2-proxy": ("X-Auth-Request-User: mallory", "X-Forwarded-User: mallory", "Remote-User: mallory"),
    "removed on the way": ("X-Remote-User: mallory", "Connection: X-Remote-User"),
    "the identifier": ("X-Remote-User: mallory", "X-Remote-Uid: mallory"),
    "the identifier of oauth2-proxy": ("X-Auth-Request-User: mallory", "X-Remote-Uid: mallory"),
    "as a trailer's name": ("Trailer: X-Remote-User", "X-Remote-User: mallory"),
}


@pytest.mark.parametrize("lines", FORGED.values(), ids=FORGED)
def test_S01_the_shipped_nginx_passes_nobodys_word_on(shipped: Nginx, lines: tuple[str, ...]) -> None:
    assert "mallory" not in ask(shipped.port, *lines)


@pytest.mark.parametrize("lines", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("cookie", ["", "Cookie: _oauth2_proxy=good"], ids=["stranger", "ada"])
def test_S01_what_the_client_writes_is_not_what_the_proxy_says(
    signing: Nginx, lines: tuple[str, ...], cookie: str
) -> None:
    answer = ask(signing.port, *lines, *([cookie] if cookie else []))
    assert "mallory" not in answer
    is_read = answer.startswith("HTTP/1.1 200")
    assert ("Continue as ada" in answer) is (bool(cookie) and is_read)


@pytest.mark.parametrize("lines", FORGED.values(), ids=FORGED)
def test_S01_beside_a_proxy_before_nginx_nobody_else_is_passed_on(behind: Nginx, lines: tuple[str, ...]) -> None:
    assert "mallory" not in ask(behind.port, *lines)


def test_a_proxy_before_nginx_is_passed_on(behind: Nginx) -> None:
    lines = ("X-Remote-User: ada", "X-Remote-Uid: s-1", "X-Forwarded-For: 203.0.113.5")
    assert "Continue as ada" in ask(behind.port, *lines, source="127.0.0.7")


DIRECT: dict[str, tuple[tuple[str, ...], str]] = {
    "one": (("X-Remote-User: ada",), "Continue as ada"),
    "twice": (("X-Remote-User: ada", "X-Remote-User: mallory"), "several values"),
    "twice the same": (("X-Remote-User: ada", "X-Remote-User: ada"), "several values"),
    "underscores": (("X_Remote_User: mallory",), ""),
    "underscores beside": (("X-Remote-User: ada", "X_Remote_User: mallory"), "Continue as ada"),
    "folded": (("X-Remote-User: ada", " mallory"), ""),
    "a space before the colon": (("X-Remote-User : mallory",), ""),
    "UTF-8": (("X-Remote-User: adà",), "printable ASCII"),
    "a tab": (("X-Remote-User: a\tda",), "printable ASCII"),
    "a carriage return": (("X-Remote-User: ada\rmallory",), ""),
    "empty": (("X-Remote-User:",), ""),
}


@pytest.mark.parametrize(("lines", "words"), DIRECT.values(), ids=DIRECT)
def test_S01_the_web_process_reads_a_proxys_headers_in_one_way_only(
    careless: Site, lines: tuple[str, ...], words: str
) -> None:
    """Without nginx between, from the proxy's own place: what a careless proxy might pass on."""
    answer = ask(careless.socket, *lines)
    assert words in answer
    assert "mallory" not in answer
    assert ("Continue as" in answer) is words.startswith("Continue")


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.3"])
def test_S01_whoever_forwards_a_port_is_not_the_proxy(site: Site, source: str) -> None:
    answer = ask(site.port, "X-Remote-User: ada", "X-Forwarded-For: 203.0.113.66", source=source)
    assert answer.startswith("HTTP/1.1 200")
    assert "ada" not in answer
    assert "203.0.113.66" not in site.server.log.read_text()


def test_S01_only_the_processes_own_user_and_group_may_open_the_socket(site: Site) -> None:
    assert site.socket.stat().st_mode & 0o777 == 0o770


def test_S01_a_group_with_a_comma_is_one_group_at_the_web_process(careless: Site) -> None:
    """Its server would make `x,platform` of two headers, too."""
    lines = ("X-Remote-User: ada", "X-Remote-Group: x,platform", "X-Remote-Group: night")
    assert ask(careless.socket, *lines, path="/api/v1/clusters").startswith("HTTP/1.1 200")
    assert json.loads(kept(careless.folder, "groups", "lines")[0]) == ["l:night", "l:x,platform"]


def test_from_the_proxy_to_a_session_and_out_again(signing: Nginx, folder: Path) -> None:
    """A client's own identifier is not the proxy's, which is the `sub` of the issuer that the file names."""
    browser = http.client.HTTPConnection("127.0.0.1", signing.port, timeout=scaled(60))

    def send(method: str, path: str, cookies: dict[str, str], body: str = "") -> tuple[int, str]:
        head = {"Cookie": "; ".join(f"{name}={text}" for name, text in cookies.items())}
        kind = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        browser.request(method, path, body or None, {"X-Remote-Uid": "mallory", **head, **kind})
        answer = browser.getresponse()
        for line in answer.headers.get_all("Set-Cookie") or []:
            name, _, text = line.partition(";")[0].partition("=")
            cookies[name] = text
        return answer.status, answer.read().decode()

    mine = {"_oauth2_proxy": "good"}
    _, page = send("GET", "/sign-in", mine)
    secret = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert secret
    assert send("POST", "/sign-in", mine, f"with=proxy&csrfmiddlewaretoken={secret[1]}")[0] == 302
    status, me = send("GET", "/me", mine)
    assert (status, "sso:night, sso:platform" in me, "trusted proxy sso" in me) == (200, True, True)
    assert kept(folder, "subject", declared()["issuer"]) == ["ada"]
    status, problem = send("GET", "/api/v1/clusters", mine)
    assert (status, "did not come through Example SSO" in problem) == (401, True)
    assert send("GET", "/me", mine)[0] == 200, "the call past the proxy has signed nobody out"
    left = {name: text for name, text in mine.items() if name != "_oauth2_proxy"}
    assert "sign in at the proxy" in send("GET", "/me", left)[1]
