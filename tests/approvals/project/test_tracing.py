"""A whole web process and a whole worker that send what they do to a collector."""

from __future__ import annotations

import gzip
import http.client
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.process import Options, Server, answers_on, free_port, wait_until
from tests.support.servers.serving import Handler, serving

SECONDS = 90.0


class Collector:
    """Keeps the names of the spans that it is sent, by service."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: dict[str, set[str]] = {}
        kept = self.spans

        class Spans(Handler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                for one in ExportTraceServiceRequest.FromString(body).resource_spans:
                    names = {it.key: it.value.string_value for it in one.resource.attributes}
                    spans = {span.name for scope in one.scope_spans for span in scope.spans}
                    kept.setdefault(names["service.name"], set()).update(spans)
                self.send_response(200)
                self.end_headers()

        self.handler = Spans


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    with serving(found.handler) as found.url:
        yield found


def settings(collector: Collector, folder: Path, redis: str) -> Options:
    return Options(
        env={
            "PYTHONPATH": str(ROOT),
            "PRATIQUE_SECRET_KEY": "only for this test",
            "PRATIQUE_DATABASE_URL": f"sqlite:///{folder / 'db.sqlite3'}",
            "PRATIQUE_REDIS_URL": redis,
            "PRATIQUE_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
    )


@pytest.mark.thorough
@pytest.mark.services
def test_pages_and_tasks_are_traced_where_the_operator_says(collector: Collector, redis: str, tmp_path: Path) -> None:
    options, port = settings(collector, tmp_path, redis), free_port()
    web = [sys.executable, "-m", "gunicorn", "approvals.project.wsgi:application", "--bind", f"127.0.0.1:{port}"]
    work = [sys.executable, "-m", "celery", "--app", "approvals.project.celery", "worker", "--pool", "threads"]
    servers = [
        Server("web", web, tmp_path / "web.log", options),
        Server("worker", [*work, "--concurrency", "1"], tmp_path / "worker.log", options),
    ]
    try:
        servers[0].wait(lambda: answers_on(port), SECONDS)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(SECONDS))
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        wait_until(lambda: "GET healthz" in collector.spans.get("pratique-web", ()), "the page's span", SECONDS)
        _send_a_task(options)
        wait_until(
            lambda: "run/approvals.sweep" in collector.spans.get("pratique-worker", ()), "the task's span", SECONDS
        )
    finally:
        for server in servers:
            server.stop()


def _send_a_task(options: Options) -> None:
    program = "from approvals.project.celery import app; app.send_task('approvals.sweep')"
    folder = Path(options.env["PRATIQUE_DATABASE_URL"].removeprefix("sqlite:///")).parent
    sender = Server("sender", [sys.executable, "-c", program], folder / "sender.log", options)
    wait_until(lambda: not sender.is_running(), "the sender", SECONDS)
    assert sender.log_tail() == ""
