"""Why no request of a spec can be prepared, kept with the deployment."""

from __future__ import annotations

from django.db import transaction

from approvals.bundle_spec import BundleSpec
from approvals.locks import for_change
from approvals.models import BundleDeployment, Request
from provisioner import health_checks
from provisioner.errors import BadHealthCheck


@transaction.atomic(durable=True)
def note_problem(*, of: Request, words: str) -> None:
    """Keep why no request of this spec can be prepared, unless the spec is another one now."""
    deployment = for_change(BundleDeployment.objects.filter(pk=of.deployment_id)).get()
    if deployment.options_digest == of.options_digest:
        keep_problem(deployment, words)


def problem_of(spec: BundleSpec) -> str:
    """What cannot be read in the health part of a spec; no request of it can be prepared before that is mended.

    CEL is not compiled inside a transaction: what is wrong with it is found when the request is prepared.
    """
    try:
        health_checks.check_spec(spec.health)
    except BadHealthCheck as exc:
        return str(exc)
    return ""


def keep_problem(deployment: BundleDeployment, words: str) -> None:
    deployment.problem = words
    deployment.save(update_fields=["problem"])
