"""A real API server that is asked thousands of times, over one connection."""

from __future__ import annotations

import http.client
import json
import ssl
from urllib.parse import urlsplit

from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.provisioner.shapes import JsonDict


class Server:
    """One connection, kept open: thousands of requests go through it."""

    def __init__(self, endpoint: Endpoint):
        address = urlsplit(endpoint.server)
        context = ssl.create_default_context(cadata=endpoint.ca_pem)
        self._connection = http.client.HTTPSConnection(
            str(address.hostname), address.port or 443, context=context, timeout=scaled(60)
        )
        self._headers = {"Authorization": f"Bearer {endpoint.tokens['admin']}"}

    def ask(
        self, method: str, path: str, given: JsonDict | None = None, content_type: str = "application/json"
    ) -> tuple[int, JsonDict]:
        headers = {**self._headers, "Content-Type": content_type}
        self._connection.request(method, path, json.dumps(given) if given else None, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text[:1] == b"{" else {}

    def close(self) -> None:
        self._connection.close()


CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
