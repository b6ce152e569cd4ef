"""The rights of the installing account, given and taken away as an administrator would."""

from __future__ import annotations

import subprocess
from itertools import product

import yaml

from tests.support.journeys.deployed_site import DeployedSite
from tests.support.patience import scaled


def grant(site: DeployedSite, rules: str) -> None:
    """Apply roles and their bindings as an administrator would, until the API server goes by them."""
    command = [str(site.kubectl), "--kubeconfig", str(site.kubeconfig), "--context", "admin", "apply", "-f", "-"]
    done = subprocess.run(command, input=rules, capture_output=True, text=True, check=False, timeout=scaled(60))
    assert done.returncode == 0, done.stderr
    for rule in (one for obj in yaml.safe_load_all(rules) for one in obj.get("rules") or ()):
        names = rule.get("resourceNames") or [""]
        for right in product(rule["verbs"], rule.get("resources") or (), rule.get("apiGroups") or (), names):
            site.until_may(site.installer, *right)


def take_away(site: DeployedSite) -> None:
    site.ctl("delete", "clusterrolebinding", f"{site.namespace}-installer")
    site.until_may(site.installer, "*", "*", "*", is_allowed=False)
