"""spec.constraints of a BundleDeployment: what has to be so in the cluster before anything of it is applied. PURE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from approvals.policy.expression import (
    CONSTRAINT,
    BadExpression,
    Facts,
    NotAsked,
    OverLimit,
    answer,
    check_compiled,
    check_form,
)
from provisioner import expressions
from provisioner.errors import ConstraintOverLimit, InvalidConstraint, InvalidRange
from provisioner.expressions import problem_words
from provisioner.missing_kinds import removal_of
from provisioner.sentences import introduced
from provisioner.versions import range_of, release_of, version_of

Constraints = Mapping[str, Any]
MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ConstraintFacts:
    """The cluster as it is: `apis` as group/version/Kind, `versions` by the name of the BundleDeployment that runs."""

    kubernetes_version: str
    apis: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    healthy: frozenset[str] = frozenset()


def expressions_of(constraints: Constraints) -> list[str]:
    """The expressions to ask the evaluator about, in the language CONSTRAINT.

    Raises InvalidConstraint for a range or an expression that cannot be read, whatever the cluster is like.
    """
    for text in _ranges(constraints):
        range_of(text)
    found = [str(each["expression"]) for each in constraints.get("cel") or ()]
    for text in found:
        try:
            check_form(text)
        except BadExpression as exc:
            raise _cannot_be_asked(text, exc) from exc
    return found


def check_constraints(constraints: Constraints, compiled: Sequence[expressions.ExpressionAnswer]) -> None:
    """Raise InvalidConstraint for an expression that does not compile; `compiled` is of expressions_of.

    Where no evaluator was free, `unmet` says so: the request waits. ConstraintOverLimit is raised for one that passes
    a limit by itself.
    """
    for text, found in zip(expressions_of(constraints), compiled, strict=True):
        try:
            check_compiled(found)
        except NotAsked:
            continue
        except OverLimit as exc:
            raise _over_limit(text, str(exc)) from exc
        except BadExpression as exc:
            raise _cannot_be_asked(text, exc) from exc


def facts_of(around: ConstraintFacts) -> Facts:
    """What an expression of the constraints may ask."""
    return {
        "kubernetes_version": around.kubernetes_version,
        "apis": sorted(around.apis),
        "versions": dict(around.versions),
        "healthy": sorted(around.healthy),
    }


def unmet(
    constraints: Constraints, around: ConstraintFacts, evaluated: Sequence[expressions.ExpressionAnswer]
) -> list[str]:
    """What of the constraints is not so, in words; empty where all are met.

    `evaluated` is of expressions_of, on facts_of. Raises InvalidConstraint, and ConstraintOverLimit for an expression
    that passes a limit: it would wait for ever.
    """
    return [
        *_version(constraints, around),
        *_apis(constraints, around),
        *_deployments(constraints, around),
        *_expressions(constraints, around, evaluated),
    ]


def _cannot_be_asked(text: str, why: BadExpression) -> InvalidConstraint:
    return InvalidConstraint(f"the constraint {_quoted(text)} is invalid: {why}")


def _over_limit(text: str, why: str) -> ConstraintOverLimit:
    return ConstraintOverLimit(
        f"the constraint {_quoted(text)} could not be evaluated: {why}. As written, it can never be met. Change "
        "spec.constraints.cel, which creates a new request"
    )


def _quoted(text: str) -> str:
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…")


def api_name(group: str, version: str, kind: str) -> str:
    return "/".join(part for part in (group, version, kind) if part)


def _ranges(constraints: Constraints) -> Iterator[str]:
    if constraints.get("kubernetesVersionRange"):
        yield constraints["kubernetesVersionRange"]
    for each in constraints.get("requiredBundleDeployments") or ():
        if each.get("versionRange"):
            yield each["versionRange"]


def _version(constraints: Constraints, around: ConstraintFacts) -> Iterator[str]:
    text = constraints.get("kubernetesVersionRange")
    if text and release_of(version_of(around.kubernetes_version)) not in range_of(text):
        yield f"Kubernetes is {around.kubernetes_version}; {text} is required"


def _apis(constraints: Constraints, around: ConstraintFacts) -> Iterator[str]:
    for each in constraints.get("requiredAPIs") or ():
        group, version, kind = each.get("group", ""), each["version"], each["kind"]
        name, removal = api_name(group, version, kind), removal_of(group, version, kind)
        if name not in around.apis:
            gone = f": Kubernetes no longer serves it as of 1.{removal.minor}" if removal else ""
            yield f"{name} is not served by the cluster{gone}"


def _deployments(constraints: Constraints, around: ConstraintFacts) -> Iterator[str]:
    for each in constraints.get("requiredBundleDeployments") or ():
        name, text = each["name"], each.get("versionRange", "")
        running = around.versions.get(name)
        if running is None:
            yield f"BundleDeployment {name} has no running revision"
        elif text and not _is_within(running, text):
            yield f"BundleDeployment {name} runs {running or 'an unknown version'}; {text} is required"
        elif name not in around.healthy:
            yield f"BundleDeployment {name} is not healthy"


def _is_within(running: str, text: str) -> bool:
    wanted = range_of(text)
    try:
        return version_of(running) in wanted
    except InvalidRange:
        return False


def _expressions(
    constraints: Constraints, around: ConstraintFacts, evaluated: Sequence[expressions.ExpressionAnswer]
) -> Iterator[str]:
    facts = facts_of(around)
    for each, found in zip(constraints.get("cel") or (), evaluated, strict=True):
        if found.exceeds:
            raise _over_limit(str(each["expression"]), problem_words(str(each["expression"]), found))
        said = answer(each["expression"], facts, CONSTRAINT, found)
        if not said.is_true:
            yield introduced(str(each.get("message") or ""), said.words)
