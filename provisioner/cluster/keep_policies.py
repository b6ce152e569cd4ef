"""By which words an object says that a deletion is to leave it where it is (security-rules.md S39). Pure.

They count in the approved content, and on the live object, where an operator writes them. Helm reads the stored
manifest when it uninstalls (pkg/action/resource_policy.go) and the live object when it upgrades (pkg/kube/client.go);
the others read the live one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from provisioner.api_groups import DELETION_POLICY, OWN_GROUP
from provisioner.values import DeletionPolicy, JsonObject

# The older word for `DELETION_POLICY: Orphan`.
PRUNE, KEEP = f"{OWN_GROUP}/prune", "false"
_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
# Of Argo CD: what is dropped stays with the first, what is deleted with its application with the second.
_OF_DROPPED, _OF_REMOVED = "Prune=false", "Delete=false"


@dataclass(frozen=True, slots=True)
class KeepPolicy:
    """An annotation, or a label where `is_label`, that keeps an object whose value is `means`.

    `reads` is how its own tool reads the value.
    """

    key: str
    means: str
    reads: Callable[[str], str] = str
    is_label: bool = False


_POLICIES = (
    KeepPolicy(DELETION_POLICY, DeletionPolicy.ORPHAN),
    KeepPolicy(PRUNE, KEEP),
    KeepPolicy("helm.sh/resource-policy", "keep", reads=lambda value: value.strip().lower()),
    KeepPolicy("kustomize.toolkit.fluxcd.io/prune", "disabled"),
    KeepPolicy("kustomize.toolkit.fluxcd.io/prune", "disabled", is_label=True),
    KeepPolicy("kapp.k14s.io/delete-strategy", "orphan"),
    KeepPolicy("cli-utils.sigs.k8s.io/on-remove", "keep"),
    KeepPolicy("client.lifecycle.config.k8s.io/deletion", "detach"),
)


def keep_words(obj: JsonObject | None, *, is_removal: bool | None = None) -> str:
    """What an object says to be kept by, as it stands there; "" where it says nothing of the kind.

    `is_removal`: its deployment is deleted, and else a new version has it no more; None for a deletion to make it anew,
    from which any of the words keeps it.
    """
    metadata = _map((obj or {}).get("metadata"))
    annotations, labels = _map(metadata.get("annotations")), _map(metadata.get("labels"))
    for policy in _POLICIES:
        value = str((labels if policy.is_label else annotations).get(policy.key) or "")
        if policy.reads(value) == policy.means:
            return f"{policy.key}: {value}"
    options = [one.strip() for one in str(annotations.get(_SYNC_OPTIONS) or "").split(",")]
    wanted = {True: (_OF_REMOVED,), False: (_OF_DROPPED,), None: (_OF_DROPPED, _OF_REMOVED)}[is_removal]
    return next((f"{_SYNC_OPTIONS}: {one}" for one in wanted if one in options), "")


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
