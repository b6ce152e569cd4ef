"""What a .helmignore leaves out: as with Helm, whose patterns are Go's."""

from __future__ import annotations

import contextlib
import time

import pytest

from provisioner.errors import BadBundle, BundleTooLarge
from provisioner.render.helm.ignore_file import ignored_paths
from tests.support.patience import scaled


@pytest.mark.parametrize(
    ("rules", "path", "is_ignored"),
    [
        ("two.yaml", "templates/two.yaml", True),
        ("/two.yaml", "templates/two.yaml", False),
        ("templates/t*", "templates/two.yaml", True),
        ("t*", "templates/one.yaml", True),
        ("*.yaml/", "templates/two.yaml", False),
        ("ci/", "ci/values.yaml", True),
        ("ci/", "templates/ci", False),
        ("\ufefftwo.yaml", "two.yaml", True),
        ("t[wx]o", "two", True),
        ("t[^w]o", "two", False),
        ("t[^w]o", "txo", True),
        ("t[!w]o", "t!o", True),
        ("t[!w]o", "txo", False),
        ("t[a-z]o", "two", True),
        (r"t[\]w]o", "t]o", True),
        (r"t\wo", "two", True),
        (r"t\*o", "two", False),
        (r"t\*o", "t*o", True),
        (r"t[a\-z]o", "two", False),
        (r"t[a\-z]o", "t-o", True),
        ("t[z-a]o", "two", False),
        ("t[^z-a]o", "two", True),
        ("a[.-0]b", "a/b", False),
        ("x/a[.-0]b", "x/a/b", True),
        ("x/a[^c]b", "x/a/b", True),
        ("x/*b", "x/a/b", False),
        ("x/a?b", "x/a/b", False),
        ("a?c", "aéc", True),
        ("a.c", "abc", False),
        ("a(b|c)+", "ab", False),
        ("ci/deep/", "ci/deep/down/values.yaml", True),
        ("", "templates/.hidden", True),
        ("", "templates/.hidden/a.yaml", True),
        ("# two\n\n", "two", False),
    ],
)
def test_patterns_mean_what_they_mean_to_helm(rules: str, path: str, *, is_ignored: bool) -> None:
    assert ignored_paths(rules.encode(), [path]) == ({path} if is_ignored else set())


@pytest.mark.parametrize("rule", ["a[b", "a[^", "a[]", "a[]b]", "a[-b]", "a[b-]", "a\\", "!a", "a/**/b"])
def test_what_helm_cannot_read_is_refused_by_name(rule: str) -> None:
    with pytest.raises(BadBundle, match=r"^\.helmignore: the pattern"):
        ignored_paths(rule.encode(), [])


# Each held against each file took 165 s; patterns with many stars longer.
@pytest.mark.parametrize("rule", ["a*b*c%d", "*%d*a*b*c*d*e*f*", "*a" * 100 + "%d", "dir/*%d?[a-z]/"])
def test_S26_many_patterns_over_many_files_take_seconds_or_are_refused(rule: str) -> None:
    rules = "\n".join(rule % at for at in range(200)).encode()
    paths = [f"dir{at % 100}/{'abcdefgh' * 3}{at}" for at in range(20_000)]
    began = time.process_time()
    with contextlib.suppress(BundleTooLarge):
        ignored_paths(rules, paths)
    assert time.process_time() - began < scaled(5)


@pytest.mark.parametrize(
    ("rules", "paths"),
    [(b"\n" * 2**20, []), (b"x", ["/".join([f"{at:08}" * 60] + ["d" * 15] * 30) for at in range(20_000)])],
    ids=["lines", "folders"],
)
def test_S26_what_is_read_of_patterns_and_folders_is_bounded(rules: bytes, paths: list[str]) -> None:
    with pytest.raises(BundleTooLarge, match="helmignore"):
        ignored_paths(rules, paths)


def test_S26_a_usual_file_of_patterns_over_a_large_chart_is_read() -> None:
    usual = (
        b".DS_Store\n.git/\n.gitignore\n.bzr/\n.bzrignore\n.hg/\n.hgignore\n.svn/\n*.swp\n*.bak\n*.tmp\n*.orig\n*~\n"
    )
    usual += b".project\n.idea/\n*.tmproj\n.vscode/\nci/\ntests/\n*.md.gotmpl\n"
    paths = [f"charts/part{at % 50}/templates/some-{at}.yaml" for at in range(20_000)] + ["ci/a.yaml", "charts/x.swp"]
    assert ignored_paths(usual, paths) == {"ci/a.yaml", "charts/x.swp"}
