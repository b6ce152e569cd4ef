"""How often: every credential is counted by address and name, every door by address or person (security.md S29)."""

from approvals.limits.addresses import client_address
from approvals.limits.counters import Limit, take
from approvals.limits.credentials import API_TOKEN, CHAT_SIGNATURE, CLUSTER_TOKEN, LINK_CODE, PASSWORD, Attempt, Door

__all__ = [
    "API_TOKEN",
    "CHAT_SIGNATURE",
    "CLUSTER_TOKEN",
    "LINK_CODE",
    "PASSWORD",
    "Attempt",
    "Door",
    "Limit",
    "client_address",
    "take",
]
