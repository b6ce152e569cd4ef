"""A chart, and the Helm repository that has versions of it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import Any

from tests.support.servers.http import Asked, FileServer, Reply


def chart(version: str, *, elsewhere: str = "") -> bytes:
    """harbour, as `helm package` makes it; its object goes into the namespace `elsewhere` where that is named."""
    place = f", namespace: {elsewhere}" if elsewhere else ""
    files = {
        "harbour/Chart.yaml": f"apiVersion: v2\nname: harbour\nversion: {version}\n",
        "harbour/templates/a.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: harbour" + place + "}\n"
            "data: {version: {{ .Chart.Version }}}\n"
        ),
    }
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return raw.getvalue()


def repository(
    server: FileServer, *versions: str, pair: str = "", is_digested: bool = True, elsewhere: str = ""
) -> str:
    """A Helm repository with these versions of a chart; its URL. `pair` is what its charts ask for (basic), "" for nothing."""

    def given(body: bytes) -> Any:
        def answer(asked: Asked) -> Reply:
            is_open = not pair or asked.headers.get("authorization") == f"Basic {pair}"
            return Reply(body) if is_open else Reply(b"", 401)

        return answer

    entries = []
    for version in versions:
        body = chart(version, elsewhere=elsewhere)
        server.serve_reply(f"/charts/harbour-{version}.tgz", given(body))
        digest = {"digest": hashlib.sha256(body).hexdigest()} if is_digested else {}
        entries.append({"version": version, "urls": [f"harbour-{version}.tgz"], **digest})
    index = json.dumps({"entries": {"harbour": entries}}).encode()
    return server.serve("/charts/index.yaml", index).removesuffix("/index.yaml")
