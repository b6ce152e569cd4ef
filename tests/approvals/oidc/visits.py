"""People of a real issuer who come to our doors: in a browser without pages, or with a token."""

from __future__ import annotations

import re
import time
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from django.test import Client
from jwcrypto.jwk import JWK

from tests.support.approvals.fixtures import World
from tests.support.servers.issuer import CLIENT, RunningIssuer, code_for

SITE = "http://127.0.0.1:9"
PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {"sub": "u-ada", "groups": ["platform"], "email": "ada@example.com"},
    "bert": {"sub": "u-bert", "groups": ["developers"], "email": "ada@example.com"},
}


def leave(client: Client, **form: str) -> dict[str, str]:
    """What our page sends the browser to the issuer with."""
    page = client.post("/oidc/example", form).content.decode()
    found = re.search(r'<a href="([^"]+)"[^>]*>continue to Example', page)
    assert found, page
    return {name: texts[0] for name, texts in parse_qs(urlsplit(unescape(found[1])).query).items()}


def come_back(client: Client, issuer: RunningIssuer, person: str = "ada", **form: str) -> Any:
    back = code_for(issuer, person, leave(client, **form))
    return client.get(f"/oidc/example/callback?{urlencode(back)}")


def signed_in(issuer: RunningIssuer, person: str = "ada") -> Client:
    client = Client()
    assert come_back(client, issuer, person).status_code == 302
    return client


def logout_token(issuer: RunningIssuer, **more: Any) -> str:
    """As the issuer signs it: with its own key."""
    key = (issuer.folder / "key.pem").read_text()
    now = int(time.time())
    known = {"iss": issuer.url, "aud": CLIENT, "iat": now, "exp": now + 60, "jti": "j-1", "sub": "u-ada"}
    events = {"http://schemas.openid.net/event/backchannel-logout": {}}
    claims = {**known, "events": events, **more}
    kid = JWK.from_pem(key.encode()).thumbprint()
    return jwt.encode(claims, key, "RS256", headers={"kid": kid, "typ": "logout+jwt"})


def new_token(client: Client, env: World) -> str:
    form = {"name": "ci", "days": 5, "scopes": ["read"], "clusters": [env.cluster.pk]}
    page = client.post("/me/tokens", form).content.decode()
    found = re.search(r"prq_[\w-]+", page)
    assert found, page
    return found[0]


def rest(text: str) -> Any:
    return Client().get("/api/v1/requests", headers={"Authorization": f"Bearer {text}"})
