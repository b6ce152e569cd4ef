"""gunicorn's own lines in our form. Its access log is off: the middleware says what was answered, without queries."""

from __future__ import annotations

import logging
import sys
from typing import Any

from gunicorn import glogging


class Logger(glogging.Logger):
    """For gunicorn's setting logger_class."""

    def setup(self, cfg: Any) -> None:
        self.cfg = cfg
        self.loglevel = self.LOG_LEVELS.get(str(cfg.loglevel).lower(), logging.INFO)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True
        self.error_log.setLevel(self.loglevel)
        self._access_log_enabled = False

    def access(self, resp: Any, req: Any, environ: Any, request_time: Any) -> None:
        """Nothing: the address holds what may be secret."""

    def exception(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        """A client whose time is over (CLIENT_SECONDS) is no failure of ours, and gets no traceback."""
        if isinstance(sys.exception(), BlockingIOError):
            self.debug("a client's time is over")
        else:
            super().exception(msg, *args, **kwargs)
