"""People whom a proxy in front has signed in: which proxies the operator trusts for which cluster, and what one says.

`declared` reads the operator's file, `headers` takes the proxy's word out of a request, `names` says whom it means on a
cluster. All of it is pure but for the file.
"""

from approvals.proxies.identity_proxies import (
    BY_UID,
    ClusterNames,
    Headers,
    IdentityProxies,
    IdentityProxy,
    NameRefused,
    Said,
    Unusable,
    drop,
    identity_on,
    is_issuer,
    is_name,
    joined,
    parse_identity_proxies,
    said_in,
)

__all__ = [
    "BY_UID",
    "ClusterNames",
    "Headers",
    "IdentityProxies",
    "IdentityProxy",
    "NameRefused",
    "Said",
    "Unusable",
    "drop",
    "identity_on",
    "is_issuer",
    "is_name",
    "joined",
    "parse_identity_proxies",
    "said_in",
]
