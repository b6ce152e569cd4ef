"""spec.constraints of a BundleDeployment: what has to be so in the cluster before anything of it is applied. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from approvals.policy.expression import BadExpression, compile_expression, evaluate
from provisioner.errors import InvalidConstraint, InvalidRange
from provisioner.versions import range_of, release_of, version_of

Constraints = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The cluster as it is: `apis` as group/version/Kind, `versions` by the name of the BundleDeployment that runs."""

    kubernetes_version: str
    apis: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    healthy: frozenset[str] = frozenset()


def check_constraints(constraints: Constraints) -> None:
    """Raise InvalidConstraint for a range or an expression that cannot be read, whatever the cluster is like."""
    for text in _ranges(constraints):
        range_of(text)
    for each in constraints.get("cel") or ():
        try:
            compile_expression(each["expression"], "constraint")
        except BadExpression as exc:
            raise InvalidConstraint(f"the constraint {each['expression']!r} cannot be asked: {exc}") from exc


def unmet(constraints: Constraints, around: Surroundings) -> list[str]:
    """What of the constraints is not so, in words; empty where all are met. Raises InvalidConstraint."""
    return [
        *_version(constraints, around),
        *_apis(constraints, around),
        *_deployments(constraints, around),
        *_expressions(constraints, around),
    ]


def api_name(group: str, version: str, kind: str) -> str:
    return "/".join(part for part in (group, version, kind) if part)


def _ranges(constraints: Constraints) -> Iterator[str]:
    if constraints.get("kubernetesVersionRange"):
        yield constraints["kubernetesVersionRange"]
    for each in constraints.get("requiredBundleDeployments") or ():
        if each.get("versionRange"):
            yield each["versionRange"]


def _version(constraints: Constraints, around: Surroundings) -> Iterator[str]:
    text = constraints.get("kubernetesVersionRange")
    if text and release_of(version_of(around.kubernetes_version)) not in range_of(text):
        yield f"Kubernetes is {around.kubernetes_version}; {text} is required"


def _apis(constraints: Constraints, around: Surroundings) -> Iterator[str]:
    for each in constraints.get("requiredAPIs") or ():
        name = api_name(each.get("group", ""), each["version"], each["kind"])
        if name not in around.apis:
            yield f"{name} is not served"


def _deployments(constraints: Constraints, around: Surroundings) -> Iterator[str]:
    for each in constraints.get("requiredBundleDeployments") or ():
        name, text = each["name"], each.get("versionRange", "")
        running = around.versions.get(name)
        if running is None:
            yield f"BundleDeployment {name} does not run"
        elif text and not _is_within(running, text):
            yield f"BundleDeployment {name} runs {running or 'no version'}; {text} is required"
        elif name not in around.healthy:
            yield f"BundleDeployment {name} is not healthy"


def _is_within(running: str, text: str) -> bool:
    wanted = range_of(text)
    try:
        return version_of(running) in wanted
    except InvalidRange:
        return False


def _expressions(constraints: Constraints, around: Surroundings) -> Iterator[str]:
    facts = {
        "kubernetes_version": around.kubernetes_version,
        "apis": sorted(around.apis),
        "versions": dict(around.versions),
        "healthy": sorted(around.healthy),
    }
    for each in constraints.get("cel") or ():
        answer = evaluate(each["expression"], facts, "constraint")
        if not answer.is_true:
            message = str(each.get("message") or "")
            yield f"{message}: {answer.words}" if message else answer.words
