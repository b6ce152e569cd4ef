"""What machines ask of a process, answered apart from the pages: on an address of its own, by a thread of its own."""

from approvals.probes.checks import PROBES, is_ready
from approvals.probes.listener import NOTHING, Answer, Answerer, Listener, open_socket

__all__ = ["NOTHING", "PROBES", "Answer", "Answerer", "Listener", "is_ready", "open_socket"]
