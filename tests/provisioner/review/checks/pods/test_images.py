"""Image references, versions of tags, and the places that images may come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provisioner.cli import main
from provisioner.review.base.facts import ClusterSurroundings
from provisioner.review.checks.pods import images
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, facts, judged_by, planned

DIGEST = "@sha256:" + "a" * 64
OTHER = "@sha256:" + "b" * 64


def pod(image: str, **container: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "web", "image": image, **container}]}
    return an_object("v1", "Pod", "web", "shop", spec=spec)


def found_in(
    obj: dict[str, Any], before: dict[str, Any] | None = None, *, allowed: tuple[str, ...] = ()
) -> list[Finding]:
    around = ClusterSurroundings(allowed_images=allowed)
    action = planned(obj, Action.UPDATE if before else Action.CREATE, before=before)
    given = facts(
        action, around=around, **({"previous": facts(planned(before, Action.CREATE)).content} if before else {})
    )
    return judged_by(given, [images.CHECK])


@pytest.mark.parametrize(
    ("image", "allowed", "is_said"),
    [
        ("registry.example.com/team/web", ("registry.example.com",), False),
        ("registry.example.com/team/web", ("registry.example.com/team",), False),
        ("registry.example.com/team/web", ("registry.example.com/team/",), False),
        ("registry.example.com/team-evil/web", ("registry.example.com/team",), True),
        ("registry.example.com.evil.org/team/web", ("registry.example.com",), True),
        ("nginx", ("docker.io/library",), False),
        ("index.docker.io/library/nginx", ("docker.io/library",), False),
        ("nginx", ("registry.example.com", "quay.io"), True),
        ("nginx", (), False),
    ],
    ids=str,
)
def test_an_image_from_a_place_on_no_list_is_said(image: str, allowed: tuple[str, ...], is_said: bool) -> None:
    found = [finding for finding in found_in(pod(image + DIGEST), allowed=allowed) if finding.rule == "IMG-07"]
    assert [finding.severity for finding in found] == ([Severity.DANGEROUS] if is_said else [])


def test_an_image_that_a_program_is_told_to_run_is_held_against_the_list() -> None:
    told = pod(f"quay.io/a/b{DIGEST}", env=[{"name": "RELATED_IMAGE_X", "value": f"evil.example.org/x{DIGEST}"}])
    found = [finding for finding in found_in(told, allowed=("quay.io",)) if finding.rule == "IMG-07"]
    assert [finding.path[-2:] for finding in found] == [("env", 0)]


def test_the_command_takes_the_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pod.yaml").write_text(json.dumps(pod(f"nginx{DIGEST}")))
    main(["review", str(tmp_path), "-o", "json", "--allow-images", "quay.io", "--allow-images", "ghcr.io"])
    (found,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["rule"] == "IMG-07"]
    assert found["evidence"]["allowed"] == ["quay.io", "ghcr.io"]


@pytest.mark.parametrize(
    ("before", "after", "is_back"),
    [
        ("1.2.0", "1.1.9", True),
        ("v1.10.0", "v1.9.0", True),
        ("1.2.0", "1.2.0-rc.1", True),
        ("1.2.0-rc.1", "1.2.0", False),
        ("1.2.0-beta.2", "1.2.0-rc.1", False),
        ("1.2.0-rc.2", "1.2.0-rc.1", True),
        ("1.2.0", "1.2.0-alpine", False),
        ("2024.01.02", "9.1", False),
        ("9.1", "2024.01.02", False),
        ("2024.02.01", "2024.01.02", True),
        ("latest", "1.2.0", False),
        ("main", "stable", False),
    ],
)
def test_a_step_back_is_one_by_version(before: str, after: str, is_back: bool) -> None:
    found = found_in(pod(f"quay.io/a/b:{after}{OTHER}"), pod(f"quay.io/a/b:{before}{DIGEST}"))
    assert ("IMG-06" in [finding.rule for finding in found]) is is_back


def test_a_new_container_that_pulls_from_another_registry_is_told() -> None:
    after = pod(f"quay.io/a/b:1{DIGEST}")
    after["spec"]["containers"].append({"name": "new", "image": f"ghcr.io/a/b:1{DIGEST}"})
    (found,) = found_in(after, pod(f"quay.io/a/b:1{DIGEST}"))
    assert (found.rule, found.variant, found.evidence["registry"]) == ("IMG-03", "new-registry", "ghcr.io")


def test_docker_hub_by_any_of_its_names_is_one_registry() -> None:
    found = found_in(pod(f"registry-1.docker.io/library/nginx:1{DIGEST}"), pod(f"nginx:1{DIGEST}"))
    assert found == []
