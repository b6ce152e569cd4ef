"""The demo's OpenID Connect issuer as a process, and a browser without pages that signs in there."""

from __future__ import annotations

import http.cookiejar
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

from tests.support.servers.process import Server, answers_on, free_port

CLIENT = "pratique"
HOST = "127.0.0.1"
START_SECONDS = 60.0


@dataclass
class RunningIssuer:
    """`people` may be changed while it runs: what is claimed is read at each token."""

    url: str
    redirect_uri: str
    folder: Path
    server: Server

    @property
    def people(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "people.json").read_text())
        return found

    def set_people(self, people: dict[str, Any]) -> None:
        whole = self.folder / "people.new"
        whole.write_text(json.dumps(people))
        whole.replace(self.folder / "people.json")

    def stop(self) -> None:
        self.server.stop()


def start_issuer(
    folder: Path, site: str, people: dict[str, Any], *, name: str = "example", port: int = 0
) -> RunningIssuer:
    """An issuer whose people come back to `site`. Raises ServiceFailed."""
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    redirect_uri = f"{site}/oidc/{name}/callback"
    (folder / "people.json").write_text(json.dumps(people))
    command = [sys.executable, "-m", "approvals.management.demo.issuer", "--port", str(port), "--folder", folder]
    more = ["--redirect-uri", redirect_uri, "--home", f"{site}/sign-in"]
    told = [
        "--back-channel",
        f"{site}/oidc/{name}/back-channel",
        "--front-channel",
        f"{site}/oidc/{name}/front-channel",
    ]
    server = Server("issuer", [*command, *more, *told], folder / "issuer.log")
    server.wait(lambda: answers_on(port), START_SECONDS)
    return RunningIssuer(f"http://{HOST}:{port}", redirect_uri, folder, server)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows the issuer's redirects, and stops at the first that leads away from it."""

    def __init__(self, url: str):
        self._url = url

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith(self._url):
            raise urllib.error.HTTPError(newurl, code, msg, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def code_for(issuer: RunningIssuer, person: str, wish: dict[str, str]) -> dict[str, str]:
    """What the issuer sends a browser back with, after `person` was picked; `wish` is the query of /authorize."""
    jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(jar, _Stay(issuer.url))
    about = {"response_type": "code", "client_id": CLIENT, "redirect_uri": issuer.redirect_uri, **wish}
    page = browser.open(f"{issuer.url}/o/authorize/?{urllib.parse.urlencode(about)}").read().decode()
    hidden = {name: unescape(text) for name, text in re.findall(r'name="(\w+)" value="([^"]*)"', page)}
    form = urllib.parse.urlencode({**hidden, "person": person}).encode()
    try:
        browser.open(f"{issuer.url}/sign-in", form)
    except urllib.error.HTTPError as left:
        query = urllib.parse.urlsplit(str(left.filename)).query
        return dict(urllib.parse.parse_qsl(query))
    raise AssertionError("the issuer sent the browser nowhere")
