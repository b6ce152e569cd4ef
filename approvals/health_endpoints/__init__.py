"""What machines ask of a process, answered apart from the pages: on an address of its own, by a thread of its own."""

from approvals.health_endpoints.checks import PROBES, healthz, is_ready, note_turn
from approvals.health_endpoints.listener import NOTHING, Listener, PlainResponse, Responder, open_socket
from approvals.health_endpoints.startup_checks import put_notes, tell_broken_plugins, tell_content_store

__all__ = [
    "NOTHING",
    "PROBES",
    "Listener",
    "PlainResponse",
    "Responder",
    "healthz",
    "is_ready",
    "note_turn",
    "open_socket",
    "put_notes",
    "tell_broken_plugins",
    "tell_content_store",
]
