"""The server that answers a chart's lookups tells what it was given, and nothing to who does not know its address."""

from __future__ import annotations

import urllib3

from provisioner.render.helm import replay

KNOWN = [{"api_version": "v1", "kind": "Secret", "namespace": "home", "name": "db", "body": {"kind": "Secret"}}]


def answer(address: str, path: str) -> tuple[int, str]:
    found = urllib3.request("GET", f"{address}{path}", retries=False)
    return found.status, found.data.decode()


def test_it_answers_what_it_was_given_under_its_own_address_alone() -> None:
    with replay.answering(KNOWN, ["v1", "v1/Secret", "apps/v1/Deployment"]) as address:
        assert answer(address, "/api/v1/namespaces/home/Secret/db") == (200, '{"kind": "Secret"}')
        assert '"name": "Deployment"' in answer(address, "/apis/apps/v1")[1]
        refused = answer(address, "/apis/apps/v1/namespaces/home/Deployment/web")
        assert (refused[0], "config.lookup does not name Deployment home/web" in refused[1]) == (403, True)
        others = answer(address.rpartition("/")[0], "/api/v1/namespaces/home/Secret/db")
        assert (others[0], "not for you" in others[1]) == (403, True)
