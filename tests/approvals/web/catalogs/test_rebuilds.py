"""The rebuilds of a version, from the page of their package to the request: what is named is what is taken."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from django.utils import timezone

from approvals import services
from approvals.catalogs import bundle_choice, followed_packages
from approvals.catalogs.editions import find_package
from approvals.ledger import pivots
from approvals.models import FollowedPackage
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened
from tests.support.approvals.revisions import revision
from tests.support.provisioner.catalogs import LATER_REBUILD, REBUILD, bundle, channel, package, rebuilt
from tests.support.stored_catalogs import catalog, stored

PAGE = "/catalogs/prod/port/packages/harbour"
PLAIN, FIRST, LATER = "harbour.v3.14.3", f"harbour.v3.14.3-{REBUILD}", f"harbour.v3.14.3-{LATER_REBUILD}"


def rows_of(text: str) -> dict[str, str]:
    """The rows of the table of versions by the name of the bundle."""
    rows = re.findall(r"<tr>.*?</tr>", text, re.DOTALL)
    return {found[1]: row for row in rows if (found := re.search(r'class="mono quiet">([^<]+)<', row))}


def installs(row: str) -> str:
    """The version that the link Install fills in; "" where there is no link."""
    found = re.search(r'href="(/deployments/new[^"]+)"', row)
    return parse_qs(urlsplit(found[1].replace("&amp;", "&")).query)["version"][0] if found else ""


def test_install_leads_to_the_bundle_beside_which_it_stands_or_is_not_there(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "create")
    row = catalog(of=env.cluster)
    stored(row, *rebuilt())
    rows = rows_of(opened(browse(env.ada), PAGE))
    pins = {name: installs(one) for name, one in rows.items()}
    assert pins == {
        LATER: f"3.14.3+{LATER_REBUILD}",
        FIRST: f"3.14.3+{REBUILD}",
        PLAIN: "",
        "harbour.v3.14.2": "3.14.2",
    }
    assert f"A new deployment that names this version takes {LATER}." in rows[PLAIN]
    found = find_package(row, "harbour")
    assert found is not None
    for name in (LATER, FIRST, "harbour.v3.14.2"):
        assert services.bundle_to_install(found, "stable", pins[name]).name == name
    assert re.search(rf'changes\?to={PLAIN}"', rows[PLAIN])


def test_a_release_beside_the_version_is_named_by_the_link_too(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "create")
    described = []
    for release in ("9", "10"):
        one = bundle("1.0.0")
        one["properties"][0]["value"]["release"] = release
        described.append({**one, "name": f"harbour.v1.0.0-{release}"})
    listed = channel("stable", *({"name": one["name"]} for one in described))
    stored(catalog(of=env.cluster), package(defaultChannel="stable"), *described, listed)
    rows = rows_of(opened(browse(env.ada), PAGE))
    assert {name: installs(one) for name, one in rows.items()} == {
        "harbour.v1.0.0-10": "1.0.0+10",
        "harbour.v1.0.0-9": "1.0.0+9",
    }


@pytest.mark.parametrize(
    ("version", "offered", "beyond"),
    [
        ("", LATER, ""),
        ("3.14.3", LATER, ""),
        (
            f"3.14.3+{REBUILD}",
            "",
            f"3.14.3+{LATER_REBUILD} is not in 3.14.3+{REBUILD}: change catalog.version to take it",
        ),
    ],
    ids=["any", "the version", "a release"],
)
def test_a_rebuild_is_offered_to_who_runs_the_one_before(env: World, version: str, offered: str, beyond: str) -> None:
    row = catalog(of=env.cluster)
    stored(row, *rebuilt(has_later=False))
    named = {"name": "port", "package": "harbour", **({"version": version} if version else {})}
    spec = world.spec(format="registry-v1", sources=[{"kind": "catalog", "catalog": named}])
    made = world.submit_spec(env.cluster, world.seen("harbour", spec, uid="harbour"), env.rita)
    assert bundle_choice.bundles_for(made.requests.get())[""].bundle == FIRST
    revision(made, 1, "active")
    pivots.answer_upgrades(made.pk)
    assert FollowedPackage.objects.get().available == ""
    stored(row, *rebuilt(), digest="sha256:two")
    assert followed_packages.deployments_due(timezone.now()) == [made.pk]
    pivots.answer_upgrades(made.pk)
    followed = FollowedPackage.objects.get()
    assert (followed.available, followed.beyond) == (offered, beyond)
