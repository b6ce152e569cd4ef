"""What people keep for themselves: ticks on the page of changes, saved views, how far they have read the news."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from approvals.access import Caller
from approvals.errors import DigestMoved, InvalidInput, NotFound
from approvals.locks import for_change
from approvals.models import NewsRead, Request, SavedView, ViewedObject
from approvals.models.listing import QUERY_LENGTH, VIEW_NAME_LENGTH

# Of one person for one round of a request: as many as a plan may hold objects, and more than anybody looks at.
MAX_VIEWED = 20_000
# Saved views of one person: more than anybody finds their way in.
MAX_VIEWS = 30


def mark_viewed(*, by: Caller, request_id: int, subject_digest: str, name: str, is_viewed: bool) -> None:
    """Keep, or forget, that this person has looked at an object of this round.

    The caller has made sure that the person may read the request and that its plan holds the object. Raises DigestMoved
    where the round on the screen is not the present one.
    """
    with transaction.atomic():
        request = Request.objects.only("subject_digest").get(pk=request_id)
        if not subject_digest or request.subject_digest != subject_digest:
            raise DigestMoved(
                "the page belongs to another round of the request", seen=subject_digest, current=request.subject_digest
            )
        of_round = ViewedObject.objects.filter(user=by.user, request=request, subject_digest=subject_digest)
        if not is_viewed:
            of_round.filter(object=name).delete()
            return
        if of_round.count() >= MAX_VIEWED:
            raise InvalidInput(f"more than {MAX_VIEWED} objects are ticked as viewed")
        of_round.get_or_create(
            object=name,
            defaults={"user": by.user, "request": request, "subject_digest": subject_digest, "at": timezone.now()},
        )


def save_view(*, by: Caller, name: str, query: str) -> SavedView:
    """Keep a view under this name; one of the same name is replaced. Raises InvalidInput past the limits."""
    if not name or len(name) > VIEW_NAME_LENGTH:
        raise InvalidInput(f"a saved view needs a name of 1 to {VIEW_NAME_LENGTH} characters", field="name")
    if len(query) > QUERY_LENGTH:
        raise InvalidInput(f"the view has {len(query)} characters; at most {QUERY_LENGTH} are allowed", field="query")
    with transaction.atomic():
        # Two tabs at once would both find room for the last one.
        for_change(User.objects.filter(pk=by.user.pk)).get()
        others = SavedView.objects.filter(user=by.user).exclude(name=name)
        if others.count() >= MAX_VIEWS:
            raise InvalidInput(f"you have {MAX_VIEWS} saved views, which is the limit: remove one first")
        view, _ = SavedView.objects.update_or_create(
            user=by.user, name=name, defaults={"query": query, "at": timezone.now()}
        )
    return view


def remove_view(*, by: Caller, view_id: int) -> None:
    """Raises NotFound where it is not theirs, or not there."""
    removed, _ = SavedView.objects.filter(user=by.user, pk=view_id).delete()
    if not removed:
        raise NotFound("the saved view does not exist")


@transaction.atomic
def mark_news_read(*, by: Caller, number: int) -> None:
    """Up to this entry of the audit; it never goes back."""
    row, is_new = for_change(NewsRead.objects.all()).get_or_create(
        user=by.user, defaults={"number": number, "at": timezone.now()}
    )
    if not is_new and number > row.number:
        row.number, row.at = number, timezone.now()
        row.save(update_fields=["number", "at"])
