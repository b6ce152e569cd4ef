"""What the cluster shows of deployments and requests: finalizer, status, conditions and mirrored requests.

Modules that other rooms use:

- `mirror`: looking after a deployment: its finalizer, status and mirrored requests in the cluster, and its health
"""

__all__ = [
    "mirror",
]
