"""API groups that several rooms name. Tables of many groups (`rbac.resources`, `render.scopes`) write theirs out."""

from __future__ import annotations

OWN_GROUP = "core.rukpak.io"  # of BundleDeployments, requests and reviews
DELETION_POLICY = f"{OWN_GROUP}/deletion-policy"  # of an object in content
PAGE_ANNOTATION = f"{OWN_GROUP}/url"  # of a mirrored request: the address of its page
RBAC_GROUP = "rbac.authorization.k8s.io"
ADMISSION_GROUP = "admissionregistration.k8s.io"
