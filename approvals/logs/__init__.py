"""Log lines: one JSON object a line (or the console's form), whoever wrote it, and no secret in it.

`configuration` is for Django's LOGGING. A process that serves (web, worker, beat, watch) calls `take_over` before
anything else: from then on warnings, uncaught exceptions and whatever is printed are log lines too.
"""

from approvals.logs.setup import say, service_of, take_over
from approvals.logs.shape import CONSOLE, JSON, configuration, hide, process_name

__all__ = ["CONSOLE", "JSON", "configuration", "hide", "process_name", "say", "service_of", "take_over"]
