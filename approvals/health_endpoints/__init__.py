"""What machines ask of a process, answered apart from the pages: on an address of its own, by a thread of its own."""

from approvals.health_endpoints.checks import PROBES, healthz, is_ready
from approvals.health_endpoints.content import tell_content_store
from approvals.health_endpoints.listener import NOTHING, Listener, PlainResponse, Responder, open_socket
from approvals.health_endpoints.plugins import tell_broken_plugins

__all__ = [
    "NOTHING",
    "PROBES",
    "Listener",
    "PlainResponse",
    "Responder",
    "healthz",
    "is_ready",
    "open_socket",
    "tell_broken_plugins",
    "tell_content_store",
]
