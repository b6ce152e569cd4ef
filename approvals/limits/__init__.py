"""Rate limits: credentials are counted by address and name, requests by address or person (security-rules.md S29).

Modules that other rooms use:

- `addresses`: whose request it is: the address that it comes from, and what strangers at it are counted under
- `crowding`: whether everybody seems to come from one address, so that the limits of strangers count all people as one
"""

from approvals.limits.addresses import client_address
from approvals.limits.counters import Limit, take
from approvals.limits.credentials import (
    API_TOKEN,
    CHAT_SIGNATURE,
    CLUSTER_TOKEN,
    COMMAND_LINE,
    LINK_CODE,
    PASSWORD,
    Attempt,
    Door,
)

__all__ = [
    "API_TOKEN",
    "CHAT_SIGNATURE",
    "CLUSTER_TOKEN",
    "COMMAND_LINE",
    "LINK_CODE",
    "PASSWORD",
    "Attempt",
    "Door",
    "Limit",
    "addresses",
    "client_address",
    "crowding",
    "take",
]
