"""The server that answers a chart's lookups tells what it was given, and nothing to who does not know its address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from provisioner.chart_engine.lookup_process import answering

KNOWN = [
    {"api_version": "v1", "kind": "Secret", "namespace": "home", "name": "db", "body": {"kind": "Secret"}},
    {"api_version": "v1", "kind": "Secret", "namespace": "home", "name": "gone", "body": None},
    {"api_version": "v1", "kind": "Node", "namespace": "", "name": "n", "body": {"kind": "Node"}},
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with answering(KNOWN, ["v1", "v1/Secret", "apps/v1/Deployment"]) as address:
        yield address


def answer(address: str, path: str, method: str = "GET") -> tuple[int, str]:
    where = urlsplit(f"{address}{path}")
    with closing(HTTPConnection(where.netloc)) as connection:
        connection.request(method, f"{address}{path}".partition(where.netloc)[2])
        found = connection.getresponse()
        return found.status, found.read().decode()


def test_it_answers_what_it_was_given_under_its_own_address_alone() -> None:
    with answering(KNOWN, ["v1", "v1/Secret", "apps/v1/Deployment"]) as address:
        assert answer(address, "/api/v1/namespaces/home/Secret/db") == (200, '{"kind": "Secret"}')
        assert '"name": "Deployment"' in answer(address, "/apis/apps/v1")[1]
        refused = answer(address, "/apis/apps/v1/namespaces/home/Deployment/web")
        assert (refused[0], "config.lookup does not name Deployment home/web" in refused[1]) == (403, True)
        others = answer(address.rpartition("/")[0], "/api/v1/namespaces/home/Secret/db")
        assert (others[0], "not for you" in others[1]) == (403, True)


@pytest.mark.parametrize(
    ("path", "code", "reason", "words"),
    [
        ("/api/v1/namespaces/home/Secret/gone", 404, "NotFound", "it does not exist"),
        ("/api/v1/namespaces/home/Secret/other", 403, "Forbidden", "config.lookup does not name Secret home/other"),
        ("/api/v1/namespaces/away/Secret/db", 403, "Forbidden", "config.lookup does not name Secret away/db"),
        ("/api/v1/Secret/db", 403, "Forbidden", "config.lookup does not name Secret db"),
        ("/apis/x.io/v1/namespaces/home/Secret/db", 403, "Forbidden", "config.lookup does not name Secret home/db"),
        ("/api/v1/namespaces/home/Secret", 403, "Forbidden", "a lookup of every Secret is not answered"),
        ("/api/v1/namespaces/home/Secret?limit=1", 403, "Forbidden", "a lookup of every Secret is not answered"),
        ("/api/v1/Node", 403, "Forbidden", "a lookup of every Node is not answered"),
        ("/apis/batch/v1", 403, "Forbidden", "config.lookup names nothing in batch/v1"),
        ("/", 403, "Forbidden", "config.lookup names nothing in "),
        ("/version", 403, "Forbidden", "config.lookup names nothing in "),
        ("/api/v1/namespaces/home/..%2f..%2fSecret/db", 403, "Forbidden", "config.lookup does not name ..%2f..%2f"),
        ("/api/v1/namespaces/../namespaces/home/Secret/db", 403, "Forbidden", "config.lookup does not name namespaces"),
        ("/api/v1/namespaces/home/Secret/%00" + "x" * 9000, 403, "Forbidden", "config.lookup does not name Secret"),
    ],
    ids=[
        "is not there",
        "another name",
        "another namespace",
        "no namespace",
        "another group",
        "a list",
        "a list with a query",
        "a list of the cluster",
        "another version",
        "no path",
        "no API",
        "a way out",
        "a plain way out",
        "a long name",
    ],
)
def test_what_it_was_not_given_is_refused_as_a_status_in_words(
    address: str, path: str, code: int, reason: str, words: str
) -> None:
    found, body = answer(address, path)
    status = json.loads(body)
    assert (found, status["code"], status["reason"], status["kind"]) == (code, code, reason, "Status")
    assert words in status["message"]
    assert len(status["message"]) < 500


def test_where_all_may_be_asked_for_what_it_was_not_given_is_not_found() -> None:
    with answering(KNOWN, [], is_open=True) as address:
        assert answer(address, "/api/v1/namespaces/home/Secret/db") == (200, '{"kind": "Secret"}')
        assert answer(address, "/apis/x.io/v1")[0] == 200
        asked = (
            "/api/v1/namespaces/home/Secret/other",
            "/api/v1/namespaces/home/Secret",
            "/apis/x.io/v1/a",
            "/api/a",
            "/api",
        )
        assert [answer(address, path)[0] for path in asked] == [404] * 5
        assert answer(address.rpartition("/")[0], "/api/v1")[0] == 403


def test_what_has_no_namespace_is_found_with_one_and_without(address: str) -> None:
    for path in ("/api/v1/Node/n", "/api/v1/namespaces/home/Node/n"):
        assert answer(address, path) == (200, '{"kind": "Node"}')


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_it_can_only_be_read(address: str, method: str) -> None:
    assert answer(address, "/api/v1/namespaces/home/Secret/db", method)[0] == 501
    assert answer(address, "/api/v1/namespaces/home/Secret/db")[0] == 200


def test_it_ends_with_the_rendering() -> None:
    with answering(KNOWN, []) as address:
        answer(address, "/api/v1")
    with pytest.raises(ConnectionRefusedError):
        answer(address, "/api/v1")
