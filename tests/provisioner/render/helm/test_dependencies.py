"""What a chart lacks in its charts/: exactly what its lock file says, or nothing and what to do."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from provisioner.errors import BadBundle, BadConfig, BundleTooLarge
from provisioner.render.helm.dependencies import (
    Dependency,
    check_packed,
    missing_dependencies,
    wanted_dependency_auth,
)
from tests.support.provisioner.charts import packed
from tests.support.provisioner.dependencies import archive, chart_with, needs, subchart

WEB, OCI = "https://charts.example.com/stable", "oci://registry.example.com/charts"
BASE, CACHE = needs("base", WEB), needs("cache", OCI, "~1.0.0")
# What Helm's own types and Go's JSON come to, of a chart with all fields and signs that Go escapes.
DEPENDENCIES = """\
dependencies:
- {name: base, version: ">=1.2.0 <2 & x", repository: https://charts.example.com/stable, condition: base.enabled,
   tags: [back, é], import-values: [data, {parent: x, child: exports}]}
- {name: cache, alias: store, version: ~0.3.0, repository: oci://registry.example.com/charts}
"""
LOCK = """\
dependencies:
- {name: base, repository: https://charts.example.com/stable, version: 1.4.2}
- {name: cache, repository: oci://registry.example.com/charts, version: 0.3.7}
digest: sha256:%s
"""
DIGEST = "2b3fe57e18de531d361f4466d144eb18625155b824b1b56b238469fa2023ed35"
DIGEST_OF_HELM_2 = "b78004515a5fa3b8594370840476144ad8f1020b388d965981381f71998525e2"
METADATA = "apiVersion: %s\nname: shop\nversion: 1.0.0\n"


def first_form(digest: str) -> dict[str, bytes]:
    files = {"Chart.yaml": METADATA % "v1", "requirements.yaml": DEPENDENCIES, "requirements.lock": LOCK % digest}
    return {path: text.encode() for path, text in files.items()}


def second_form(digest: str) -> dict[str, bytes]:
    return {"Chart.yaml": (METADATA % "v2" + DEPENDENCIES).encode(), "Chart.lock": (LOCK % digest).encode()}


@pytest.mark.parametrize("files", [second_form(DIGEST), first_form(DIGEST), first_form(DIGEST_OF_HELM_2)])
def test_the_digest_of_a_lock_file_is_the_one_that_helm_makes(files: Mapping[str, bytes]) -> None:
    assert missing_dependencies(files) == (Dependency("base", "1.4.2", WEB), Dependency("cache", "0.3.7", OCI))


PACKED_BASE = {"charts/base-1.0.0.tgz": archive("base")}
FOLDER_CACHE = {f"charts/other-name/{path}": data for path, data in subchart("cache").items()}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, ["base", "cache"], id="neither"),
        pytest.param(PACKED_BASE, ["cache"], id="one that is packed"),
        pytest.param(FOLDER_CACHE, ["base"], id="one in a folder of another name"),
        pytest.param({**PACKED_BASE, **FOLDER_CACHE, "Chart.lock": b"digest: old"}, [], id="both, whatever the lock"),
    ],
)
def test_only_what_is_not_in_charts_is_missing(files: Mapping[str, bytes], expected: list[str]) -> None:
    missing = missing_dependencies({**chart_with(BASE, CACHE), **files})
    assert [dependency.name for dependency in missing] == expected


def test_a_chart_that_is_brought_may_have_no_repository_beside_one_that_is_fetched() -> None:
    own = {f"charts/own/{path}": data for path, data in subchart("own").items()}
    missing = missing_dependencies({**chart_with(needs("own", ""), BASE), **own})
    assert [dependency.name for dependency in missing] == ["base"]


def test_without_a_lock_file_exact_versions_are_taken() -> None:
    exact = chart_with(needs("base", f"{WEB}/", "v1.4.2-rc.1+b"), locked=None)
    assert missing_dependencies(exact) == (Dependency("base", "v1.4.2-rc.1+b", WEB),)


def test_one_chart_under_two_names_is_fetched_once() -> None:
    assert len(missing_dependencies(chart_with(needs("base", WEB, alias="a"), needs("base", WEB, alias="b")))) == 1


UPDATE = "run `helm dependency update`"
REFUSED: dict[str, tuple[Mapping[str, bytes], str]] = {
    "no lock and a range": (chart_with(BASE, locked=None), f"asks for 'base' in '1.x', .*: {UPDATE}"),
    "no lock and no version": (chart_with(needs("base", WEB, ""), locked=None), UPDATE),
    "a lock of other dependencies": (
        {**chart_with(BASE), "Chart.lock": chart_with(CACHE)["Chart.lock"]},
        f"Chart.lock is not of the dependencies .*: {UPDATE}",
    ),
    "a lock without a digest": (chart_with(BASE, digest="none"), UPDATE),
    "a lock with fewer": (chart_with(BASE, CACHE, locked=["1.0.0"]), UPDATE),
    "a lock with a range": (chart_with(BASE, locked=["1.x"]), "has the version '1.x'"),
    "a lock with a version that climbs": (chart_with(BASE, locked=["1.0.0/../../x"]), "has the version"),
    "an alias": (chart_with(needs("base", "@stable")), f"only one machine knows; .*{UPDATE}"),
    "an alias, in full": (chart_with(needs("base", "alias:stable")), "only one machine knows"),
    "no repository": (chart_with(needs("base", "")), "is not in charts/, and has no repository"),
    "an address that asks": (chart_with(needs("base", f"{WEB}?of=me")), "expected an address without"),
    "another scheme": (chart_with(needs("base", "s3://bucket/charts")), "expected https://, oci:// or file://"),
    "a name that climbs": (chart_with(needs("../base", WEB)), "expected the name of a chart"),
    "a name that is a path": (chart_with(needs("a/b", WEB)), "expected the name of a chart"),
    "a name that is a list": (
        {"Chart.yaml": chart_with(BASE)["Chart.yaml"].replace(b'"base"', b'["base"]').replace(b"1.x", b"1.0.0")},
        "expected the name of a chart",
    ),
    "one version of two repositories": (chart_with(BASE, needs("base", OCI, alias="b")), "from two repositories"),
}


@pytest.mark.parametrize("how", list(REFUSED))
def test_a_chart_that_does_not_say_exactly_what_it_needs_is_refused_with_what_to_do(how: str) -> None:
    files, words = REFUSED[how]
    with pytest.raises(BadBundle, match=words):
        missing_dependencies(files)


def test_a_chart_with_too_many_dependencies_is_refused() -> None:
    with pytest.raises(BundleTooLarge, match="has 65 dependencies"):
        missing_dependencies(chart_with(*(needs(f"base-{number}", WEB) for number in range(65))))


@pytest.mark.parametrize(
    "auth",
    [
        "registry.example.com",
        [{"host": "", "secret": {"name": "pull"}}],
        [{"host": "https://registry.example.com", "secret": {"name": "pull"}}],
        [{"secret": {"name": "pull"}}],
        [{"host": "registry.example.com", "secret": {"name": ["pull"]}}],
        [{"host": "registry.example.com", "secret": {"name": "pull", "key": "x"}}],
        [{"host": "registry.example.com", "secret": {"name": "pull"}, "path": "charts"}],
        [{"host": "registry.example.com", "secret": {"name": "pull"}}] * 65,
    ],
)
def test_each_secret_for_dependencies_names_its_host(auth: object) -> None:
    sound = [{"host": "registry.example.com", "secret": {"name": "pull"}}]
    (one,) = wanted_dependency_auth({"dependencyAuth": sound}, "shop")
    assert (one.host, str(one.secret)) == ("registry.example.com", "Secret shop/pull")
    with pytest.raises(BadConfig, match=r"config\.dependencyAuth: "):
        wanted_dependency_auth({"dependencyAuth": auth}, "shop")


BOMB = {"Chart.yaml": subchart("base")["Chart.yaml"], "files/zeros": bytes(65 * 2**20)}


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (archive("other"), BadBundle, "holds 'other' '1.0.0'; expected base 1.0.0"),
        (archive("base", version="1.0.1"), BadBundle, "holds 'base' '1.0.1'; expected base 1.0.0"),
        (packed({**subchart("base"), "Chart.yaml": subchart("base")["Chart.yaml"] + b"dependencies: [{name: more}]\n"}),
         BadBundle, "needs 'more', which its archive lacks in charts/"),
        (packed({"a.yaml": b""}), BadBundle, "holds no Chart.yaml"),
        (packed({"../../evil": b""}, "base"), BadBundle, "absolute or climbs"),
        (packed(BOMB), BundleTooLarge, "max_bytes|max_file_bytes|max_ratio"),
        (b"<html>not here</html>", BadBundle, "is no archive of a chart"),
    ],
    ids=["another name", "another version", "needs more", "no chart", "climbs", "bomb", "no archive"],
)  # fmt: skip
def test_an_archive_that_is_not_the_whole_dependency_is_refused(
    data: bytes, error: type[BadBundle], words: str
) -> None:
    check_packed(Dependency("base", "1.0.0", WEB), archive("base"))
    with pytest.raises(error, match=words):
        check_packed(Dependency("base", "1.0.0", WEB), data)
