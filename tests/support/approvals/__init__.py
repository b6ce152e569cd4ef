"""The service without a cluster: its rows, its people, a fake Kubernetes at our own port, and what they send."""
