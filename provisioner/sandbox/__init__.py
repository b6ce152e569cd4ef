"""A small Kubernetes API in one process, for trying out and for fast tests; never for anything that matters.

It is held to the real API server by the contract suite: where they differ, this is wrong.
"""

from provisioner.sandbox.sandbox import Sandbox, SandboxUser

__all__ = ["Sandbox", "SandboxUser"]
