"""What to do about power over Pratique: the last sentence of a finding, which a headline leaves out."""

from __future__ import annotations

LIMIT_RIGHTS = "Limit these rights to the namespaces that the program works in, or have a person approve them"
OWN_ACCOUNT = "Give the program an account of its own with only the rights that it needs"


def without_advice(message: str) -> str:
    """The facts of a finding's message, without the advice that follows them."""
    for advice in (LIMIT_RIGHTS, OWN_ACCOUNT):
        message = message.removesuffix(".").removesuffix(f". {advice}")
    return message
