"""What the cluster shows of deployments and requests: finalizer, status, conditions and mirrored requests."""
