"""The demo's own sign-in: whoever comes by it may use the cluster as far as the demo promises."""

from __future__ import annotations

from pathlib import Path

import yaml

from approvals.management.demo import issuers
from approvals.management.demo.seeds import PEOPLE, cluster_objects


def test_the_service_may_act_as_everybody_whom_the_demos_issuer_names(tmp_path: Path) -> None:
    issuers.write_issuers(tmp_path / "issuers.yaml", "http://127.0.0.1:1")
    [issuer] = yaml.safe_load((tmp_path / "issuers.yaml").read_text())["issuers"]
    prefix = issuer["clusters"][0]["claimMappings"]["username"]["prefix"]
    rules = [rule for obj in cluster_objects() for rule in obj.get("rules", ())]
    named = {
        name
        for rule in rules
        if rule["resources"] == ["users"] and "impersonate" in rule["verbs"]
        for name in rule["resourceNames"]
    }
    assert named >= {f"{prefix}{name}" for name in PEOPLE}
