"""Kustomizations: built by kustomize itself, in a bounded process that reaches neither files nor the network."""

from provisioner.render.kustomize.rendering import find

__all__ = ["find"]
