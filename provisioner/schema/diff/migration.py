"""How what is stored in a version gets into another one, so that the API server lets the version go. Pure."""

from __future__ import annotations

import json
import shlex

from provisioner.schema.definition.crd import Crd


def migration_steps(old: Crd, new: Crd) -> list[str]:
    """What an administrator does, in order, before `new` can take the place of `old`; [] where `new` stores nothing.

    After "Upgrade existing objects to a new stored version" of Kubernetes' page on versions of CRDs. The commands are
    for a shell: names are quoted, for a CRD of a file may be called anything.
    """
    target = new.storage_version
    if target is None:
        return []
    resource = shlex.quote(f"{old.names.get('plural') or ''}.{target.name}.{old.group}")
    everywhere = " -A" if old.scope == "Namespaced" else ""
    status = shlex.quote(json.dumps({"status": {"storedVersions": [target.name]}}))
    read, write = f"kubectl get {resource}{everywhere} -o json", "kubectl replace -f -"
    patch = f"kubectl patch crd {shlex.quote(old.name)} --subresource=status --type=merge -p {status}"
    steps = [
        *_first(old, target.name),
        f"write every object again, if there are any: {read} | {write}",
        f"say that nothing is stored otherwise any more: {patch}",
        "then this version can be applied: an approved request for it continues automatically",
    ]
    return [f"{number}. {words}" for number, words in enumerate(steps, 1)]


def _first(old: Crd, target: str) -> list[str]:
    """What has to be applied before, where the objects are not stored in `target` now."""
    stored = old.storage_version
    if stored is not None and stored.name == target:
        return []
    kept = ", ".join(version.name for version in old.versions if version.name != target)
    words = (
        f"ask for a version of this bundle that still has {kept} and stores {target} (storage: true at {target} alone)"
        " and have it applied: changed by hand, the storage version would count as drift and be corrected"
    )
    return [words]
