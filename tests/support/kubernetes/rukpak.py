"""RukPak's own definition of BundleDeployments, as far as it is in the way of ours."""

from __future__ import annotations

# As a cluster has it where RukPak is installed.
RUKPAKS_OWN = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "bundledeployments.core.rukpak.io"},
    "spec": {
        "group": "core.rukpak.io",
        "scope": "Cluster",
        "names": {"kind": "BundleDeployment", "plural": "bundledeployments", "singular": "bundledeployment"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
