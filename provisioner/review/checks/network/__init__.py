"""Checks of webhooks, policies and API services, and of what they reach.

- `allocations`: ports and addresses that only one Service can have
- `api_services`: APIs that come and go
- `callers`: what stays and calls a Service that goes
- `fail_closed`: what nobody can write while a webhook is down
- `network`: what is opened to the network
- `network_policies`: network policies
- `policies`: admission policies
- `policy_reach`: what network policies let through
- `webhook_effects`: what webhooks do to the bundle
- `webhook_reach`: what a webhook sees
- `webhooks`: admission webhooks
"""

__all__ = [
    "allocations",
    "api_services",
    "callers",
    "fail_closed",
    "network",
    "network_policies",
    "policies",
    "policy_reach",
    "webhook_effects",
    "webhook_reach",
    "webhooks",
]
