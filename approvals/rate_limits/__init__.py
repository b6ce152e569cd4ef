"""Rate limits: credentials are counted by address and name, requests by address or person (security-rules.md S29)."""

from approvals.rate_limits.clients import (
    API_TOKEN,
    CHAT_SIGNATURE,
    CHECK_TOKEN,
    CLUSTER_TOKEN,
    COMMAND_LINE,
    LINK_CODE,
    PASSWORD,
    Attempt,
    Door,
    client_address,
)
from approvals.rate_limits.counters import Limit, take

__all__ = [
    "API_TOKEN",
    "CHAT_SIGNATURE",
    "CHECK_TOKEN",
    "CLUSTER_TOKEN",
    "COMMAND_LINE",
    "LINK_CODE",
    "PASSWORD",
    "Attempt",
    "Door",
    "Limit",
    "client_address",
    "take",
]
