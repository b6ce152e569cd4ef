"""The Kubernetes door: BundleDeployments made or changed with kubectl and GitOps become requests like any other.

Modules that other rooms use:

- `loop`: list, then watch, one thread a cluster
"""

__all__ = [
    "loop",
]
