"""By which words an object is kept: those of each tool, when that tool keeps it."""

from __future__ import annotations

import pytest

from provisioner.cluster.keep_policies import keep_words

ARGO, FLUX = "argocd.argoproj.io/sync-options", "kustomize.toolkit.fluxcd.io/prune"


@pytest.mark.parametrize(
    ("annotations", "when"),
    [
        ({"core.rukpak.io/deletion-policy": "Orphan"}, "dropped removed replaced"),
        ({"core.rukpak.io/prune": "false"}, "dropped removed replaced"),
        ({"core.rukpak.io/prune": "False"}, ""),
        ({"helm.sh/resource-policy": "keep"}, "dropped removed replaced"),
        ({"helm.sh/resource-policy": " Keep "}, "dropped removed replaced"),
        ({"helm.sh/resource-policy": "keeper"}, ""),
        ({ARGO: "Prune=false"}, "dropped replaced"),
        ({ARGO: "Validate=false, Delete=false"}, "removed replaced"),
        ({ARGO: "Delete=false,Prune=false"}, "dropped removed replaced"),
        ({ARGO: "Prune=confirm,Delete=confirm"}, ""),
        ({FLUX: "disabled"}, "dropped removed replaced"),
        ({"kapp.k14s.io/delete-strategy": "orphan"}, "dropped removed replaced"),
        ({"cli-utils.sigs.k8s.io/on-remove": "keep"}, "dropped removed replaced"),
        ({"client.lifecycle.config.k8s.io/deletion": "detach"}, "dropped removed replaced"),
        ({}, ""),
        ("no map", ""),
        ({"helm.sh/resource-policy": None}, ""),
    ],
    ids=str,
)
def test_S39_an_object_is_kept_by_the_words_of_each_tool(annotations: object, when: str) -> None:
    obj = {"metadata": {"annotations": annotations}}
    asked = {"dropped": False, "removed": True, "replaced": None}
    assert " ".join(name for name, is_removal in asked.items() if keep_words(obj, is_removal=is_removal)) == when


def test_S39_flux_reads_labels_too_and_others_do_not() -> None:
    assert keep_words({"metadata": {"labels": {FLUX: "disabled"}}}) == f"{FLUX}: disabled"
    assert keep_words({"metadata": {"labels": {"helm.sh/resource-policy": "keep"}}}) == ""
    assert [keep_words(one) for one in (None, {}, {"metadata": None})] == ["", "", ""]
