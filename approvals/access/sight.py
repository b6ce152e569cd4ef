"""Which live values of a report a viewer may see: those of objects that Kubernetes lets them get (security.md S09).

One rule for every door: the page, the shared file, REST.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User

from approvals import models
from approvals.access.questions import may_see_object
from provisioner.values import ObjectRef

EXISTS = "exists, hidden from you"
Record = Mapping[str, Any]


class Sight:
    """One viewer's sight of one cluster. Kubernetes is asked at most `limit` times; what is left after that is hidden.

    With `widest_first` it is asked about the kind, the namespace and the object, so that most people cost a few
    questions for a whole report; without, about each object alone, which is cheaper for a few objects.
    """

    def __init__(self, user: User, cluster: models.Cluster, *, limit: int, widest_first: bool = True) -> None:
        self._user, self._cluster = user, cluster
        self._limit, self._widest_first = limit, widest_first
        self._answers: dict[ObjectRef, bool] = {}

    def may_see(self, ref: ObjectRef) -> bool | None:
        """None where nobody was asked any more, which counts as no."""
        wider = (replace(ref, namespace="", name=""), replace(ref, name=""), ref) if self._widest_first else (ref,)
        answers = []
        for each in dict.fromkeys(wider):
            answers.append(self._ask(each))
            if answers[-1]:
                return True
        return None if None in answers else False

    def _ask(self, ref: ObjectRef) -> bool | None:
        if ref not in self._answers and len(self._answers) < self._limit:
            self._answers[ref] = may_see_object(self._user, self._cluster, ref).allowed
        return self._answers.get(ref)


def withheld(finding: Record, words: str = EXISTS) -> dict[str, Any]:
    """A finding's record without live values; `words` say why nothing else is there.

    Of a Secret the rule, the message and the path go as well: they would tell how it differs from the bundle's.
    """
    unseen = {**finding, "evidence": {"hidden": words}}
    return {**unseen, "rule": "", "message": words, "path": []} if is_secret(finding["ref"]) else unseen


def is_secret(ref: Record) -> bool:
    return (ref["group"], ref["kind"]) == ("", "Secret")


def reference(record: Record) -> ObjectRef:
    return ObjectRef(record["group"], record["version"], record["kind"], record["namespace"], record["name"])


def key_of(ref: Record) -> tuple[str, ...]:
    """What makes two references of a report's record the same object, whatever version they are written in."""
    return (ref["group"], ref["kind"], ref["namespace"], ref["name"])
