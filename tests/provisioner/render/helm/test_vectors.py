"""Small charts that others brought, a folder each under vectors/formats, and what each gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from provisioner.errors import BadBundle, InvalidManifest
from provisioner.render import Target
from provisioner.values import Content, RepeatEffect
from tests.support.folders import VECTORS
from tests.support.provisioner.charts import CHART, SERVED, config_map, rendered, texts

pytestmark = pytest.mark.usefixtures("each_helm", "kept_engine")


def content_of(
    name: str, *, kept: Mapping[str, str] | None = None, target: Target | None = None, **replaced: tuple[bytes, bytes]
) -> Content:
    """The chart of a folder, with the text of some of its templates replaced, and what its deployment kept."""
    folder = VECTORS / "formats" / name
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for template, (old, new) in replaced.items():
        path = f"templates/{template}.yaml"
        assert old in files[path]
        files[path] = files[path].replace(old, new)
    return rendered(files, kept=kept, target=target)


@pytest.fixture(autouse=True)
def vectors() -> Path:
    if not VECTORS.is_dir():
        pytest.skip("the vectors are not there")
    return VECTORS


def test_a_key_that_is_there_twice_is_noted_or_refused_by_both_places() -> None:
    same = content_of("01-dupkey-chart", a=(b"name: b", b"name: a"))
    assert [(one.path, one.effect) for one in same.repeated] == [("metadata.name", RepeatEffect.EQUAL)]
    with pytest.raises(InvalidManifest, match=r"templates/a\.yaml:5: .* on line 4 with another value"):
        content_of("01-dupkey-chart")


def test_what_a_chart_makes_up_is_the_same_once_it_is_kept() -> None:
    first = content_of("03-random", kept={})
    (made,) = first.made_up.values
    kept = {made.place.key: made.value}
    again = [content_of("03-random", kept=kept) for _ in range(2)]
    assert {content.digest for content in again} == {first.digest}
    assert content_of("03-random", kept={}).digest != first.digest


def test_a_hook_of_no_moment_is_not_installed() -> None:
    content = content_of("05-empty-hook/new")
    assert [manifest.ref.name for manifest in content.manifests] == ["a"]
    assert {hook.ref.name for hook in content.hooks} == {"h0", "h1", "h6"}


def test_null_for_the_default_of_a_subchart_is_what_each_helm_makes_of_it(each_helm: int) -> None:
    (sub,) = [one.body["data"] for one in content_of("04-null-subchart-default").manifests if one.ref.name == "sub-sub"]
    assert json.loads(sub["d"]) == {4: {"a": 1, "b": 2}, 3: {"b": 2}}[each_helm]


def test_of_a_release_that_is_taken_over_it_is_known_what_helm_3_renders_otherwise(helm3: Path) -> None:
    target = Target("v1.36.3", SERVED, is_upgrade=True, is_takeover=True)
    found = content_of("04-null-subchart-default", target=target)
    if found.engine == "v3.22.0":
        assert found.helm_3_differs is None
        return
    assert [str(ref) for ref in found.helm_3_differs or ()] == ["ConfigMap sub-sub"]
    assert content_of("04-null-subchart-default").helm_3_differs is None, "nobody takes anything over"


# The other rows of the table in docs/operating/sources.md, each with what Helm 3 and Helm 4 make of it.
DIFFERENCES: dict[str, tuple[str, str, str]] = {
    "the end of a template": ("a: |+\n  x\n\n\n", "x\n", "x\n\n\n\n"),
    "between documents": ("a: |+\n  x\n\n\n---\n", "x\n", "x\n"),
    "the chart as a whole": ('a: {{ (.Chart | toJson | fromJson).name | default "unnamed" }}\n', "shop", "unnamed"),
    "the version of Helm": ("a: {{ .Capabilities.HelmVersion.Version | trunc 4 }}\n", "v3.2", "v4.2"),
}


@pytest.mark.parametrize(("data", "helm_3", "helm_4"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_the_manual_lists_what_both_render_otherwise(data: str, helm_3: str, helm_4: str, each_helm: int) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n" + "".join(
        f"  {line}" if line.strip() and not line.startswith("---") else line for line in data.splitlines(keepends=True)
    )
    content = rendered({"Chart.yaml": CHART, "templates/a.yaml": text.encode()})
    assert content.manifests[0].body["data"]["a"] == {3: helm_3, 4: helm_4}[each_helm]
    assert content.engine == {3: "v3.22.0", 4: "v4.2.3"}[each_helm]


def test_a_kubernetes_version_as_a_whole_beside_a_question_for_apis_is_refused_by_helm_4_alone(each_helm: int) -> None:
    see = config_map('print .Capabilities.KubeVersion (.Capabilities.APIVersions.Has "batch/v1")').encode()
    files, target = {"Chart.yaml": CHART, "templates/a.yaml": see}, Target("v1.30.2", SERVED)
    with nullcontext() if each_helm == 3 else pytest.raises(BadBundle, match="KubeVersion.Version"):
        assert texts(rendered(files, target=target))["made"] == "{v1.30.2 1 30} false"
