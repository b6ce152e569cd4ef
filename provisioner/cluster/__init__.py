"""The only room that meets Kubernetes: its API, who may do what, and how objects enter it, settle and leave."""
