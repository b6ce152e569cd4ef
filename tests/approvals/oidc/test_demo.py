"""The demo's own sign-in: whoever comes by it may use the cluster as far as the demo promises."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from approvals.management.demo import seeds
from approvals.management.demo.seeds import ISSUER, PEOPLE, cluster_objects


def test_the_service_may_act_as_everybody_whom_the_demos_issuer_names(tmp_path: Path) -> None:
    seeds.write_issuers(tmp_path / "issuers.yaml", "http://127.0.0.1:1")
    [issuer] = yaml.safe_load((tmp_path / "issuers.yaml").read_text())["issuers"]
    assert issuer["clusters"][0]["claimMappings"]["username"] == {"claim": "sub", "prefix": ""}
    seeds.write_people(tmp_path)
    people = json.loads((tmp_path / "people.json").read_text())
    rules = [rule for obj in cluster_objects() for rule in obj.get("rules", ())]
    named = {
        name
        for rule in rules
        if rule["resources"] == ["users"] and "impersonate" in rule["verbs"]
        for name in rule["resourceNames"]
    }
    assert named >= {person["sub"] for person in people.values()}


def test_a_person_of_the_demo_has_one_name_on_pages_and_in_the_cluster(tmp_path: Path) -> None:
    """An account is named after the user name at the issuer and the issuer (services.issuers), the cluster says `sub`."""
    seeds.write_people(tmp_path)
    people = json.loads((tmp_path / "people.json").read_text())
    assert {name: person["sub"] for name, person in people.items()} == {name: f"{name}@{ISSUER}" for name in PEOPLE}
    people["ada"] = {"sub": "ada", "groups": []}
    (tmp_path / "people.json").write_text(json.dumps(people))
    seeds.write_people(tmp_path)
    assert json.loads((tmp_path / "people.json").read_text())["ada"] == {"sub": "ada@demo", "groups": []}
