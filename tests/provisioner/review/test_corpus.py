"""Real bundles, pair by pair: every pair gives a report, quickly, in which nothing crashed."""

from __future__ import annotations

import json
import os
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import provisioner.review
from provisioner.pipeline import look_offline, permissions, preflight
from provisioner.rbac import Subject
from provisioner.render import BUILT_IN, Rendering, render_content
from provisioner.review import permission_text, preflight_text
from provisioner.review.permission_words import files_of
from provisioner.review.record import to_record
from provisioner.values import Content, GroupKind, Severity, Tree

ROOT = Path(__file__).resolve().parents[3]
CORPUS = Path(os.environ.get("PRATIQUE_CORPUS", ROOT.parent / "shared" / "corpus")) / "plain"
FAMILIES = ("strimzi-kafka-operator", "ingress-nginx", "gateway-api-standard", "operator-controller")
pytestmark = pytest.mark.corpus


def versions(family: str) -> list[Path]:
    def key(path: Path) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", path.name)]

    return sorted((CORPUS / family).iterdir(), key=key) if (CORPUS / family).is_dir() else []


PAIRS = [pair for family in FAMILIES for pair in pairwise(versions(family))]


def is_namespaced(kind: GroupKind) -> bool | None:
    return BUILT_IN.get(kind, True)


def content_of(folder: Path) -> Content:
    """Of several variants of the same manifests one."""
    variants = [folder / "standard.yaml", folder / "provider" / "cloud" / "deploy.yaml"]
    chosen = [path for path in variants if path.exists()][:1] or sorted(folder.glob("*.yaml"))
    files = {path.name: path.read_bytes() for path in chosen}
    return render_content(Tree(files), Rendering("plain", "default", "installer", is_namespaced), pins=())


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=[f"{old.parent.name} {old.name} {new.name}" for old, new in PAIRS])
@pytest.mark.thorough
def test_a_pair_of_real_bundles_gives_a_report_in_which_nothing_crashed(old: Path, new: Path) -> None:
    before, after = content_of(old), content_of(new)
    began = time.process_time()
    report = look_offline(after, before)
    assert time.process_time() - began < 20.0
    assert not [one.message for one in report.findings if one.rule == "CRASHED"]
    assert 1 < len(report.headline) <= 5
    assert json.loads(json.dumps(to_record(report)))["totals"]


def test_strimzi_1_0_0_drops_served_versions_and_says_so_first() -> None:
    folder = CORPUS / "strimzi-kafka-operator"
    report = look_offline(content_of(folder / "1.0.0"), content_of(folder / "0.51.0"))
    assert report.worst.is_at_least(Severity.BREAKING)
    dropped = [
        one.rule for one in report.findings if one.ref and "kafkas." in one.ref.name and "v1beta2" in one.message
    ]
    assert {"CRD-10", "CRD-11"} & set(dropped)
    assert "v1beta2" in report.headline[0]


def test_the_same_real_bundle_twice_changes_nothing() -> None:
    content = content_of(versions("ingress-nginx")[0])
    report = look_offline(content, content)
    assert not [one for one in report.findings if one.is_new]


SCHEMAS = Path(provisioner.review.__file__).parent


def fits(record: dict[str, Any], schema: str) -> None:
    jsonschema.Draft202012Validator(json.loads((SCHEMAS / schema).read_text())).validate(json.loads(json.dumps(record)))


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=[f"{old.parent.name} {old.name} {new.name}" for old, new in PAIRS])
@pytest.mark.thorough
def test_permissions_and_preflight_of_a_real_bundle_fit_their_published_schemas(old: Path, new: Path) -> None:
    before, after = content_of(old), content_of(new)
    rights = permissions(None, after, before)
    fits(permission_text.to_record(rights, files_of(after)), "permissions.schema.json")
    found = preflight(None, after, account=Subject("ServiceAccount", "installer", "ops"))
    fits(preflight_text.to_record(found), "preflight.schema.json")
    shown = permission_text.as_text(rights, files_of(after)) + preflight_text.as_text(found)
    assert " 1 rights" not in shown
    assert "does not hold itself" not in shown  # nobody was asked what it holds
