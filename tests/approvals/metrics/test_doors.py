"""Who may read the metrics: whoever has the token, or reaches the address that only the operator's network does."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from approvals.health_endpoints import Listener, checks, listener
from approvals.health_endpoints.listener import MAX_OPEN
from approvals.metrics.exposition import serve
from approvals.project import celery, configuration
from tests.approvals.metrics.conftest import TOKEN, Scrape, key
from tests.support.patience import scaled, wait_for
from tests.support.servers.process import free_port


def test_metrics_are_read_with_the_token(db: None, token: str) -> None:
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer["Content-Type"].partition(";")[0]) == (200, "text/plain")
    assert "pratique_requests" in answer.content.decode()


@pytest.mark.parametrize(
    "authorization",
    [
        pytest.param("", id="nothing"),
        pytest.param("Bearer", id="no token"),
        pytest.param("Bearer ", id="an empty one"),
        pytest.param("Bearer wrong-token-0123456789-0123456789", id="a wrong one"),
        pytest.param(f"Bearer {TOKEN}x", id="more than it"),
        pytest.param(f"Bearer {TOKEN[:-1]}", id="less than it"),
        pytest.param(f"Basic {TOKEN}", id="another scheme"),
        pytest.param("Bearer \udce4\xff", id="no ASCII"),
    ],
)
@pytest.mark.parametrize("is_set", [True, False])
def test_S29_without_the_token_there_is_no_such_page(
    authorization: str, is_set: bool, db: None, settings: Any, token: str
) -> None:
    if not is_set:
        settings.PRATIQUE = {**settings.PRATIQUE, "METRICS_TOKEN": ""}
    for method in ("GET", "POST", "HEAD", "INVENTED"):
        browser = Client(enforce_csrf_checks=True)
        refused = browser.generic(method, "/metrics", HTTP_AUTHORIZATION=authorization)
        nowhere = browser.generic(method, "/nothing", HTTP_AUTHORIZATION=authorization)
        assert (refused.status_code, nowhere.status_code) == (404, 404)
        assert refused.headers.keys() == nowhere.headers.keys()
        assert without_ids(refused.content) == without_ids(nowhere.content)


def without_ids(content: bytes) -> str:
    """The page without what is another one in every answer: the id, the proof of the form, the address asked for."""
    return re.sub(r'<code>[^<]*</code>|value="[^"]*"', "", content.decode())


def test_a_refused_token_is_counted(db: None, token: str, scrape: Scrape) -> None:
    name = key("pratique_refused_sign_ins_total", door="metrics_token")
    before = scrape()[name]
    Client().get("/metrics", headers={"Authorization": "Bearer wrong-token-0123456789-0123456789"})
    assert scrape()[name] == before + 1


@pytest.mark.parametrize("text", ["short", "x" * 31, "with a blank in it, but long enough for a token", "ä" * 40])
def test_a_token_that_somebody_may_guess_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="PRATIQUE_METRICS_TOKEN") as refused:
        configuration.read({"PRATIQUE_METRICS_TOKEN": text})
    assert text not in str(refused.value)


@pytest.mark.parametrize("text", ["9090", ":9090", "host:", "host:0", "host:65536", "host:port"])
def test_an_address_that_cannot_be_listened_on_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="PRATIQUE_METRICS_ADDRESS"):
        configuration.read({"PRATIQUE_METRICS_ADDRESS": text})


@pytest.fixture
def listening(transactional_db: None, settings: Any) -> Iterator[int]:
    port = free_port()
    settings.PRATIQUE = {**settings.PRATIQUE, "METRICS_ADDRESS": ("127.0.0.1", port)}
    server = serve("worker")
    assert isinstance(server, Listener)
    yield port
    server.stop()


def get(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(60))
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_worker_tells_of_itself_on_its_own_address(listening: int) -> None:
    status, body = get(listening, "/metrics")
    assert (status, "pratique_steps_total" in body, "pratique_requests{" in body) == (200, True, False)
    assert get(listening, "/")[0] == 404


def test_the_address_asks_for_the_token_where_there_is_one(listening: int, token: str) -> None:
    assert get(listening, "/metrics")[0] == 404
    assert get(listening, "/metrics", Authorization=f"Bearer {token}")[0] == 200


def test_a_process_whose_main_loop_stands_still_does_not_live(
    listening: int, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the token: kubelets have none."""
    monkeypatch.setattr(checks, "_turned_at", [])
    assert get(listening, "/healthz")[0] == 200, "it has not begun"
    monkeypatch.setattr(checks, "_turned_at", [time.monotonic() - checks.STILL_SECONDS - 1])
    assert get(listening, "/healthz")[0] == 503
    celery.note_turn()  # as beat, worker and watch do
    assert get(listening, "/healthz")[0] == 200


@pytest.mark.parametrize("said", [b"", b"GET /metrics HTTP/1.1\r\nX: "], ids=["silent", "half"])
def test_S29_slow_clients_do_not_stop_the_listener(
    listening: int, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HEAD_SECONDS", 3600.0)
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_OPEN + 50):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", listening), timeout=scaled(60)))
            with contextlib.suppress(OSError):
                sock.sendall(said)
        for _ in range(3):
            assert get(listening, "/metrics")[0] == 200


def test_S29_who_drips_bytes_at_the_listener_is_cut_off(listening: int) -> None:
    def is_cut() -> bool:
        try:
            sock.sendall(b"G")
        except OSError:
            return True
        return False

    with socket.create_connection(("127.0.0.1", listening), timeout=scaled(60)) as sock:
        wait_for(is_cut, "who drips bytes is cut off", every=0.1)


def test_S29_a_scraper_is_not_pushed_out_by_a_crowd_of_one_client(
    listening: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that nobody goes for being slow, however slow this machine is.
    monkeypatch.setattr(listener, "HEAD_SECONDS", 3600.0)
    with socket.create_connection(("127.0.0.1", listening), scaled(60), ("127.0.0.9", 0)) as scraper:
        scraper.sendall(b"GET /metrics HTTP/1.1\r\n")
        with contextlib.ExitStack() as stack:
            for _ in range(MAX_OPEN + 50):
                stack.enter_context(socket.create_connection(("127.0.0.1", listening), timeout=scaled(60)))
            scraper.sendall(b"\r\n")
            assert scraper.recv(100).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1", "pratique.example"])
def test_S29_an_address_that_others_reach_is_served_with_a_token_or_not_at_all(host: str) -> None:
    given = {"PRATIQUE_METRICS_ADDRESS": f"{host}:9090"}
    with pytest.raises(ValueError, match="set PRATIQUE_METRICS_TOKEN, or PRATIQUE_METRICS_OPEN=true"):
        configuration.read(given)
    for also in ({"PRATIQUE_METRICS_TOKEN": TOKEN}, {"PRATIQUE_METRICS_OPEN": "true"}):
        assert configuration.read({**given, **also})["METRICS_ADDRESS"][1] == 9090


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "[::1]", "localhost"])
def test_an_address_of_this_machine_alone_needs_no_token(host: str) -> None:
    assert configuration.read({"PRATIQUE_METRICS_ADDRESS": f"{host}:9090"})["METRICS_ADDRESS"]


def test_S29_without_the_token_the_address_answers_as_if_there_were_nothing(listening: int, token: str) -> None:
    assert get(listening, "/metrics") == get(listening, "/nothing")
    assert get(listening, "/metrics", Authorization="Bearer wrong-token-0123456789-0123456789") == get(listening, "/x")


def test_a_port_that_is_taken_is_told_and_stops_nothing(listening: int, caplog: pytest.LogCaptureFixture) -> None:
    assert serve("watch") is None
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == ["cannot serve metrics"]
