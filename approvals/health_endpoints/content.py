"""Each process says at its start, in its log, if it cannot use the content store; `/readyz` goes on saying so."""

from __future__ import annotations

import logging
import threading

from approvals.encryption.files import content_files
from approvals.errors import StoreUnavailable

logger = logging.getLogger(__name__)


def tell_content_store() -> threading.Thread:
    """Begin to look, in a thread that ends with the process; nothing waits for the answer."""
    thread = threading.Thread(target=_tell, daemon=True, name="content-store")
    thread.start()
    return thread


def _tell() -> None:
    try:
        content_files().look()
    except (StoreUnavailable, OSError) as exc:
        logger.error("the content store cannot be used", extra={"problem": str(exc)})
