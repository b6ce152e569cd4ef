"""What was typed wrongly."""

from __future__ import annotations


class Usage(Exception):
    """What was typed cannot be meant; the message says what was expected."""
