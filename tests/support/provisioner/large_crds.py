"""CRDs for the benchmarks, as large as real ones get; and, run as a program, one comparison in a process of its own.

`python -m tests.support.provisioner.large_crds OLD NEW ROUNDS` prints what peers/crdify/main.go prints. Reading the files is not counted.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from provisioner.render import load_all

WIDTH, DEPTH = 4, 6
# Width and depth of CRDs of about 4,000, 6,500, 11,000 and 22,000 nodes, and whether they have descriptions: the API
# server stores no more than about 1.5 MB of one, which larger ones only keep without.
SIZES = ((5, 5, True), (4, 6, True), (6, 5, False), (7, 5, False))
CRDS, ROLES = 40, 20
WORDS = "says what this field is for, when it may be left out, and what is done where it is"
LEAVES: tuple[dict[str, Any], ...] = (
    {"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
    {"type": "integer", "format": "int32", "minimum": 0},
    {"type": "string", "enum": ["Always", "IfNotPresent", "Never"]},
    {"type": "array", "items": {"type": "string"}},
)


def crd(name: str, *, width: int = WIDTH, depth: int = DEPTH, is_described: bool = True) -> dict[str, Any]:
    """A CRD with one version; of the usual width and depth it has 6,511 nodes."""
    names = {"plural": f"{name}s", "singular": name, "kind": name.title(), "listKind": f"{name.title()}List"}
    schema = {"type": "object", "properties": {"spec": _tree(width, depth), "status": _tree(width, 2)}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    made = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.bench.example.com"},
        "spec": {"group": "bench.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    for node in nodes(made) if not is_described else ():
        node.pop("description", None)
    return made


def reworded(body: dict[str, Any], *, each: int = 40) -> dict[str, Any]:
    """The CRD with other words everywhere, and every so many fields with another limit or gone."""
    found = copy.deepcopy(body)
    for place, node in enumerate(list(nodes(found))):
        node["description"] = f"{node.get('description', '')} (since 2.0)"
        if place % each == 0 and node.get("maxLength"):
            node["maxLength"] = 63
        elif place % each == 1 and node.get("properties"):
            node["properties"].popitem()
    return found


def nodes(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All nodes of the schemas of a CRD."""
    waiting = [version["schema"]["openAPIV3Schema"] for version in body["spec"]["versions"]]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [*node.get("properties", {}).values(), *([node["items"]] if "items" in node else [])]


def versions(*, each: int = 4) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The objects of two versions of a bundle of 10 MB with 40 CRDs and their roles, every so many CRDs changed."""
    before = [crd(f"widget{number}", depth=4 + (number % 3 == 0)) for number in range(CRDS)]
    after = [reworded(body) if number % each == 0 else body for number, body in enumerate(before)]
    rights = [it for number in range(ROLES) for it in _granted(number)]
    return [*before, *rights[2:]], [*after, *rights]


def _granted(number: int) -> list[dict[str, Any]]:
    name, group = f"operator-{number}", "rbac.authorization.k8s.io"
    rule = {"apiGroups": ["bench.example.com", ""], "resources": [f"widget{number}s", "secrets"], "verbs": ["*"]}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "bench"}
    role_ref = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    return [
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role_ref,
            "subjects": [subject],
        },
    ]


def _tree(width: int, depth: int) -> dict[str, Any]:
    if depth == 0:
        return {"type": "object", "properties": {f"leaf{at}": _leaf(at) for at in range(width)}}
    below = {f"part{at}": _tree(width, depth - 1) for at in range(width)}
    fields = below if depth > 1 else _tree(width, 0)["properties"]
    return {"type": "object", "description": f"This part {WORDS}.", "properties": fields}


def _leaf(place: int) -> dict[str, Any]:
    return {"description": f"This field {WORDS}.", **copy.deepcopy(LEAVES[place % len(LEAVES)])}


def peak_kib(pid: int | str = "self") -> int:
    """The highest resident size of a process, as the kernel counts it since it began to run its program."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def main(old_file: str, new_file: str, rounds: str) -> None:
    from provisioner.schema import compare
    from provisioner.values import Severity

    old, new = (next(iter(load_all(Path(file).read_bytes(), name=file))) for file in (old_file, new_file))
    before, seconds = peak_kib(), []
    for _ in range(int(rounds)):
        began = time.perf_counter()
        found = compare(old, new)
        seconds.append(time.perf_counter() - began)
    refuses = any(one.severity.is_at_least(Severity.BREAKING) for one in found)
    said = {"seconds": seconds, "peak_kib_before": before, "peak_kib_after": peak_kib(), "refuses": refuses}
    sys.stdout.write(f"{json.dumps(said)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
