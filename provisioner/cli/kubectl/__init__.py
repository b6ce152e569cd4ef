"""`kubectl pratique`: requests looked at and decided with the caller's own kubeconfig.

It speaks to the API server alone, so Kubernetes checks every step, and sends the credential nowhere else.
What it shows comes from the API objects; the whole report is in the browser.
"""

from provisioner.cli.kubectl.commands import main
from provisioner.cli.kubectl.completion import complete

__all__ = ["complete", "main"]
