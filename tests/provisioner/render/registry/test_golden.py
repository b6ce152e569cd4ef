"""Real operator bundles: equal to what OLM v1 makes of them where that is known, and all others render or say why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from provisioner.errors import BadConfig
from provisioner.render import BUILT_IN, Rendering, render_content
from provisioner.values import Content, Tree
from tests.provisioner.render.registry.shipping import rendered
from tests.support.folders import CORPUS
from tests.support.sampling import sampled

GOLDEN = CORPUS / "golden/olm-convert-webhook-operator/v0.0.5"
BUNDLES = sorted(one.parent.parent for one in (CORPUS / "bundles").glob("*/*/metadata/annotations.yaml"))
pytestmark = pytest.mark.corpus


def tree_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def as_made_by_olm() -> Content:
    """What OLM wrote, through the same canonical form."""
    plain = Rendering("plain", "webhook-system", "installer", BUILT_IN.get)
    expected = {file.name: file.read_bytes() for file in (GOLDEN / "expected/all-webhook-types").iterdir()}
    return render_content(Tree(expected), plain, pins=[])


@pytest.mark.parametrize("name", ["registry-v1", "registry+v1"])
def test_a_bundle_becomes_the_objects_that_olm_makes_of_it(name: str) -> None:
    asked = Rendering(name, "webhook-system", "installer", BUILT_IN.get, {"certificates": "none"})
    ours = render_content(Tree(tree_of(GOLDEN / "bundle")), asked, pins=[])
    found, expected = ({one.ref.identity: one.body for one in each.manifests} for each in (ours, as_made_by_olm()))
    assert found == expected
    assert ours.unused.count == 0


def test_the_corpus_of_bundles_is_there() -> None:
    assert len(BUNDLES) == 81


def config_for(tree: dict[str, bytes]) -> dict[str, str]:
    """What a bundle has to be given that cannot watch all namespaces."""
    watches_all = any(b"type: AllNamespaces" in text and not _NEVER.search(text) for text in tree.values())
    return {} if watches_all else {"watchNamespace": "home"}


_NEVER = re.compile(rb"supported: false\s+type: AllNamespaces|type: AllNamespaces\s+supported: false")


@pytest.mark.parametrize("folder", sampled(BUNDLES, lambda folder: f"{folder.parent.name}-{folder.name}"))
def test_a_real_bundle_renders_or_says_that_it_cannot_watch_all_namespaces(folder: Path) -> None:
    tree = tree_of(folder)
    config = config_for(tree)
    if config:
        with pytest.raises(BadConfig, match="watchNamespace is missing: this operator cannot watch all namespaces"):
            rendered(tree)
    content = rendered(tree, config)
    kinds = {one.ref.kind for one in content.manifests}
    assert ("Deployment" in kinds, "ClusterServiceVersion" in kinds) == (True, False)
    assert content.unused.count == 0
    assert content.digest == rendered(dict(reversed(tree.items())), config).digest
