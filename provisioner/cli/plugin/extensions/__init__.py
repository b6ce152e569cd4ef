"""What extensions bring for others to use, who may use it, and what installing one takes.

All of it is asked with the caller's own kubeconfig, and of nobody but its API server.
"""
