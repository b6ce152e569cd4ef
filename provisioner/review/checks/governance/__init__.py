"""Checks of what governs others: admission, quotas and the objects that the control plane goes by.

- `amounts`: amounts as quotas name and people write them
- `cluster_defaults`: classes that are the default of the cluster
- `demand`: what workloads ask of their namespaces
- `full_quotas`: quotas of the cluster that leave no room
- `limit_ranges`: limit ranges
- `narrowing`: what admission is no longer asked about
- `quotas`: quotas
- `weaker_policies`: admission policies that become weaker
- `weaker_webhooks`: admission webhooks that become weaker
- `well_known`: objects of the control plane
- `well_known_table`: which those are, and why
"""

__all__ = [
    "amounts",
    "cluster_defaults",
    "demand",
    "full_quotas",
    "limit_ranges",
    "narrowing",
    "quotas",
    "weaker_policies",
    "weaker_webhooks",
    "well_known",
    "well_known_table",
]
