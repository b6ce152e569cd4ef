"""Real charts render to the same objects as with `helm template`, of the same version, built from its Go module."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provisioner.errors import BadBundle
from provisioner.render import BUILT_IN, Rendering, Target, render_content
from provisioner.values import Manifest, Tree
from tests.support.built import built
from tests.support.folders import CORPUS
from tests.support.patience import scaled
from tests.support.provisioner.charts import chart, config_map, rendered, texts

CHARTS = sorted((CORPUS / "charts").glob("*/*")) if CORPUS.is_dir() else []
# What Helm runs when it installs and when it upgrades; around a deletion it runs the same hooks after both.
RUN = {False: {"pre-install", "post-install"}, True: {"pre-upgrade", "post-upgrade"}}
DELETING = {"pre-delete", "post-delete"}
EXTRA = ("monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor")
KUBERNETES = "v1.31.4"

pytestmark = [pytest.mark.controlplane, pytest.mark.corpus, pytest.mark.thorough]


@pytest.fixture
def helm(each_helm: int) -> Path:
    found = built("helm4", "helm.sh/helm/v4/cmd/helm") if each_helm == 4 else built("helm", "helm.sh/helm/v3/cmd/helm")
    assert found is not None
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    """The chart; some of the collection keep their Chart.yaml under another name."""
    found = {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    if "Chart.template.yaml" in found:
        found["Chart.yaml"] = found.pop("Chart.template.yaml")
    return found


def templated(helm: Path, folder: Path, values: dict[str, Any], *words: str) -> str | None:
    """What `helm template` prints; None where it refuses."""
    given = folder.parent / "given.json"
    given.write_text(json.dumps(values))
    command = [str(helm), "template", "one", str(folder), "--namespace", "home", "--values", str(given), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=scaled(120), env={"HOME": str(folder)}
    )
    return done.stdout if done.returncode == 0 else None


@pytest.mark.parametrize("told", [False, True], ids=["as it is", "of a cluster"])
@pytest.mark.parametrize("folder", CHARTS, ids=lambda one: f"{one.parent.name}-{one.name}")
def test_a_real_chart_renders_as_with_helm_template(
    folder: Path, helm: Path, tmp_path: Path, *, told: bool, each_helm: int
) -> None:
    files = files_of(folder)
    for path, data in files.items():
        (tmp_path / "chart" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "chart" / path).write_bytes(data)
    values: dict[str, Any] = {}
    words = ["--include-crds", "--skip-tests"]
    target = None
    if each_helm == 3 and not told:  # as Helm's own releases are built; the module alone says v1.20.0
        words += ["--kube-version", "v1.37.0"]
    if told:
        words += ["--kube-version", KUBERNETES, "--api-versions", ",".join(EXTRA), "--is-upgrade"]
        target = Target(KUBERNETES, (*own_apis(), *EXTRA), is_upgrade=True)
    expected = templated(helm, tmp_path / "chart", values, *words)
    config = {"values": values, "releaseName": "one"}
    if expected is None:
        with pytest.raises(BadBundle):
            rendered(files, config, target=target)
        return
    plain = Rendering("plain", "home", "installer", BUILT_IN.get)
    wanted = render_content(Tree({"manifests/all.yaml": expected.encode()}), plain, pins=[])
    found = rendered(files, config, target=target)
    moments = {one.ref: moments_of(one) for one in wanted.manifests}
    staying = {one.ref: one.body for one in wanted.manifests if not moments[one.ref]}
    for one in found.manifests:
        if "crds" in Path(one.file).parts:  # what Helm never deletes says so
            metadata = staying[one.ref]["metadata"]
            kept = {**(metadata.get("annotations") or {}), "core.rukpak.io/deletion-policy": "Orphan"}
            staying[one.ref] = {**staying[one.ref], "metadata": {**metadata, "annotations": kept}}
    hooks = {one.ref: one.body for one in wanted.manifests if moments[one.ref] & (RUN[told] | DELETING)}
    assert {one.ref: one.body for one in found.manifests} == staying
    assert {one.ref: one.body for one in found.hooks} == hooks


def moments_of(manifest: Manifest) -> set[str]:
    annotations = manifest.body["metadata"].get("annotations") or {}
    return {one.strip() for one in annotations.get("helm.sh/hook", "").split(",") if one.strip()}


def own_apis() -> tuple[str, ...]:
    """Those that Helm takes for served where no cluster is known."""
    see = config_map('join "," .Capabilities.APIVersions')
    return tuple(texts(rendered(chart(templates__a=see)))["made"].split(","))
