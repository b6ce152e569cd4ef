"""The demo's file of issuers and who there is at its own one, which `demo.issuer` serves."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from approvals.management.demo.seeds import CLUSTER, ISSUER, PEOPLE, issuer_name


def write_people(folder: Path) -> None:
    """Who can be picked; what somebody changed there since the last start stays, but for names of an older demo."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "people.json"
    people = {name: {"sub": issuer_name(name), "groups": [group]} for name, group in PEOPLE.items()}
    if path.exists():
        known = json.loads(path.read_text())
        people = {
            name: {**it, "sub": issuer_name(name) if it["sub"] == name else it["sub"]} for name, it in known.items()
        }
    path.write_text(json.dumps(people, indent=2))


def write_issuers(path: Path, url: str) -> None:
    """The file for PRATIQUE_OIDC_FILE: the demo's issuer counts on the demo's cluster."""
    mappings = {"username": {"claim": "sub", "prefix": ""}, "groups": {"claim": "groups", "prefix": ""}}
    issuer = {
        "name": ISSUER,
        "title": "the demo issuer",
        "url": url,
        "audiences": ["pratique"],
        "client": {"id": "pratique"},
        "commandLine": {"id": "kubectl-pratique"},
        "clusters": [{"name": CLUSTER, "claimMappings": mappings}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"issuers": [issuer]}, sort_keys=False))


def command(python: str, folder: Path, port: str, site: str) -> list[str]:
    """Start the issuer, whose people come back to `site`."""
    addresses = {name: f"{site}/oidc/{ISSUER}/{name}" for name in ("callback", "back-channel", "front-channel")}
    return [
        *(python, "-m", "approvals.management.demo.issuer", "--port", port, "--folder", str(folder)),
        *("--redirect-uri", addresses["callback"], "--home", f"{site}/sign-in"),
        *("--back-channel", addresses["back-channel"], "--front-channel", addresses["front-channel"]),
    ]
