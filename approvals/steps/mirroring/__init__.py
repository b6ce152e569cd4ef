"""What the cluster shows of deployments and requests: finalizer, status, conditions and mirrored requests.

Modules that other rooms use:

- `conditions`: the conditions that the cluster shows, as values
- `mirror`: looking after a deployment: its finalizer, status and mirrored requests in the cluster, and its health
"""

__all__ = [
    "conditions",
    "mirror",
]
