"""What machines ask of a process, answered apart from the pages: on an address of its own, by a thread of its own."""

from approvals.health_endpoints.checks import PROBES, is_ready
from approvals.health_endpoints.listener import NOTHING, Listener, PlainResponse, Responder, open_socket

__all__ = ["NOTHING", "PROBES", "Listener", "PlainResponse", "Responder", "is_ready", "open_socket"]
