"""Traces of pages and tasks for the operator's collector, by OpenTelemetry. Imported only where one is named."""

from __future__ import annotations

from django.conf import settings
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.django import DjangoInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def start(service: str) -> None:
    """Send this process's traces to PRATIQUE_OTLP_ENDPOINT.

    Once a process; in the web process before its handler is made, because the instrumentation is a middleware.
    """
    endpoint = str(settings.PRATIQUE["OTLP_ENDPOINT"]).rstrip("/")
    provider = TracerProvider(resource=Resource.create({"service.name": f"pratique-{service}"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    trace.set_tracer_provider(provider)
    DjangoInstrumentor().instrument()
    CeleryInstrumentor().instrument()  # type: ignore[no-untyped-call]  # the library has no types for it


def start_worker(**_: object) -> None:
    """For Celery's signal worker_init."""
    start("worker")
