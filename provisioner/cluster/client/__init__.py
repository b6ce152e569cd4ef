"""The one way to a Kubernetes API server: the connection, its answers and refusals, discovery, and who may do what."""
