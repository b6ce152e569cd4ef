"""Whether a cluster is what spec.constraints asks for; asked when a request is prepared and before it is applied."""

from __future__ import annotations

from approvals import policy
from approvals.models import Request
from approvals.selectors import lists
from approvals.selectors.pages import version_words
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.expressions.evaluator import ask
from provisioner.values import HealthState


def unmet_words(request: Request, api: Api) -> str:
    """What of spec.constraints is not so now, "" if all is. Raises InvalidConstraint, and TryLater by the cluster."""
    constraints = request.spec.get("constraints") or {}
    if not constraints or request.purpose == Request.Purpose.DELETE:
        return ""
    texts = policy.expressions_of(constraints)
    policy.check_constraints(constraints, ask(policy.CONSTRAINT, texts))
    around = _surroundings(request, api)
    found = policy.unmet(constraints, around, ask(policy.CONSTRAINT, texts, policy.facts_of(around)))
    return f"waiting for its constraints: {'; '.join(found)}" if found else ""


def _surroundings(request: Request, api: Api) -> policy.ConstraintFacts:
    running = {one.name: one for one in lists.running_beside(deployment=request.deployment)}
    return policy.ConstraintFacts(
        kubernetes_version=api.version(),
        apis=frozenset(policy.api_name(one.group, one.version, one.kind) for one in api.resources()),
        versions={
            name: version_words(one.active_revision.request.spec).split(" ")[0]
            for name, one in running.items()
            if one.active_revision
        },
        healthy=frozenset(name for name, one in running.items() if one.health == HealthState.CURRENT),
    )
