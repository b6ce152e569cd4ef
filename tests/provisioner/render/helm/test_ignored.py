"""What a .helmignore leaves out: as with Helm, whose patterns are Go's."""

from __future__ import annotations

import pytest

from provisioner.errors import BadBundle
from provisioner.render.helm.ignored import IgnoredFiles


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
        ("", "templates/.hidden", True),
        ("# two\n\n", "two", False),
    ],
)
def test_patterns_mean_what_they_mean_to_helm(rules: str, path: str, *, is_ignored: bool) -> None:
    assert (path in IgnoredFiles.of(rules.encode())) is is_ignored


@pytest.mark.parametrize("rule", ["a[b", "a[^", "a[]", "a\\", "!a", "a/**/b"])
def test_what_helm_cannot_read_is_refused_by_name(rule: str) -> None:
    with pytest.raises(BadBundle, match=r"^\.helmignore: the pattern"):
        IgnoredFiles.of(rule.encode())
