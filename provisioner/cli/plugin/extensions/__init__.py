"""What extensions bring for others to use, who may use it, and what installing one takes.

All of it is asked with the caller's own kubeconfig, and of nobody but its API server.

- `apis`: the command `apis`
- `granting`: the command `grant`
- `installing`: the command `rbac`
- `revoking`: `grant --remove`
- `installed`: the extensions of a cluster, and what the caller may do with their APIs
- `listing`: what `apis` prints
- `manifests`: what a preview of roles and bindings takes
- `subjects`: somebody as they are typed
"""

__all__ = ["apis", "granting", "installed", "installing", "listing", "manifests", "revoking", "subjects"]
