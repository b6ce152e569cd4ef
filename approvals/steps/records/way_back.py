"""What a request to go back to a revision cannot undo, from what was recorded of the revisions since."""

from __future__ import annotations

from approvals.models import Outcome, Request
from approvals.models.request import OBJECT_LENGTH
from provisioner.review.base.facts import Gone, WayBack
from provisioner.values import Action, Content, OutcomeState

TAKING = (Action.DELETE, Action.REPLACE)


def way_back(request: Request, content: Content) -> WayBack | None:
    """The revision that is gone back to, and which objects of its content were deleted or made anew since.

    None for every other request. What is not in `content` is not looked for: it does not come back.
    """
    target = request.to_revision
    if target is None:
        return None
    since = Outcome.objects.filter(
        request__deployment=request.deployment,
        request__revision__number__gt=target.number,
        action__in=TAKING,
        state=OutcomeState.DONE,
    )
    refs = {str(one.ref)[:OBJECT_LENGTH]: one.ref for one in content.manifests}
    rows = since.order_by("request__revision__number", "pk").values_list(
        "object", "action", "request__revision__number"
    )
    gone = {name: Gone(refs[name], Action(action), number) for name, action, number in rows if name in refs}
    return WayBack(target.number, tuple(gone[name] for name in sorted(gone)))
