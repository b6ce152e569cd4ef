"""What `spec.config` changes in rendered objects: patches, and namespace, namePrefix, commonLabels and images as
kustomize means them. Pure."""

from provisioner.render.patches.changes import patch_objects
from provisioner.render.patches.config import PatchConfig, parse_config

__all__ = ["PatchConfig", "parse_config", "patch_objects"]
