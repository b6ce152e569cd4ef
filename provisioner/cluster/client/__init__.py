"""The one way to a Kubernetes API server: the connection, its answers and refusals, discovery, and who may do what.

- `access`: who may do what, asked of the API server
- `answers`: what it answers
- `api`: `Cluster`: all calls, as one identity
- `credentials`: when those of a kubeconfig end
- `discovery`: the kinds that it serves
- `exchanges`: what an observer is told of each call
- `failures`: its refusals as our errors
- `kubeconfig`: kubeconfigs, judged before they are used
- `openapi`: the schemas that it publishes
"""

__all__ = [
    "access",
    "answers",
    "api",
    "credentials",
    "discovery",
    "exchanges",
    "failures",
    "kubeconfig",
    "openapi",
]
