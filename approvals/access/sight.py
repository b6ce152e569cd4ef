"""The live values of a report that a viewer may see: those of objects that they can get (security-rules.md S09).

One rule for every door: the page, the shared file, REST. What the API server says of an object is a value of it (S27),
whether the object exists now or not: nobody can tell what a webhook quotes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from approvals import models
from approvals.access.caller import Caller
from approvals.access.questions import Permission, may_see_object
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.drift import public_place
from provisioner.errors import AlreadyExists
from provisioner.masking import masked_value
from provisioner.review.base.messages import PLACES
from provisioner.review.base.record import action_from, finding_from
from provisioner.review.checks.objects.objects import say_owner
from provisioner.review.output.headline import own_headline, with_own_words
from provisioner.review.secret_texts import without_texts
from provisioner.review.visibility.fact_views import ROLES
from provisioner.review.visibility.finding_views import OWNERS
from provisioner.review.workloads.pod_specs import runs_pods
from provisioner.review.workloads.workload_changes import RUNNING, WorkloadChange, is_autoscaler, workload_changes
from provisioner.sentences import some
from provisioner.values import Action, Finding, ObjectRef, Plan, Severity, display_name

EXISTS = "exists, hidden from you"
UNASKED = "see the object"
HIDDEN = "hidden"
# Where in a new object values of the content's Secrets stand, and of which ones (steps.prepare).
SECRET_TEXTS = "secretTexts"  # noqa: S105 - the name of a part, and no secret
OWN_VERSION = "v1alpha2"
Record = Mapping[str, Any]


# What a headline is made of: nothing below it is asked about.
_WORTH_A_SENTENCE = Severity.DANGEROUS


class Sight:
    """One viewer's sight of one cluster. Kubernetes is asked at most `limit` times, of these at most `objects` times
    about single objects; what is left then is hidden.
    """

    def __init__(self, caller: Caller, cluster: models.Cluster, *, limit: int, objects: int | None = None) -> None:
        self._caller, self._cluster, self._limit = caller, cluster, limit
        self._objects_left = limit if objects is None else objects
        self._answers: dict[ObjectRef, bool] = {}

    def may_see(self, ref: ObjectRef, *, widest_first: bool = True) -> bool | None:
        """Return whether the viewer may get the object; None if nobody was asked any more, which counts as no.

        With `widest_first` Kubernetes is asked about the kind, the namespace and the object, so that most people cost a
        few questions for a whole report; without, about the object alone, which is cheaper for a few objects.
        """
        scopes = (replace(ref, namespace="", name=""), replace(ref, name=""), ref)
        if any(self._answers.get(scope) for scope in scopes):
            return True
        answers = []
        for scope in dict.fromkeys(scopes if widest_first else (ref,)):
            has_room = len(self._answers) < self._limit and (self._objects_left > 0 or not scope.name)
            if scope not in self._answers and has_room:
                self._objects_left -= bool(scope.name)
                self._answers[scope] = may_see_object(self._caller, self._cluster, scope).allowed
            answers.append(self._answers.get(scope))
            if answers[-1]:
                return True
        return None if None in answers else False

    def permission(self, ref: ObjectRef) -> Permission:
        """Return whether the viewer may get the object, with the reason and the RBAC rule that would allow it."""
        return may_see_object(self._caller, self._cluster, ref)


def may_see_roles(caller: Caller, cluster: models.Cluster) -> bool:
    """Whether the caller may get all roles and bindings: words of the authorizer name some of them."""
    sight = Sight(caller, cluster, limit=len(ROLES))
    return all(sight.may_see(role) for role in ROLES)


def deployment_ref(name: str) -> ObjectRef:
    """A BundleDeployment as the object whose right to `get` shows its config."""
    return ObjectRef(OWN_GROUP, OWN_VERSION, "BundleDeployment", "", name)


def shown_spec(sight: Sight, name: str, spec: Record) -> dict[str, Any]:
    """The spec of a BundleDeployment as one viewer may see it: all of it for who may `get` that in the cluster.

    Of its `config`, which charts often put into Secrets, others see the names alone, of the rest what is not written
    like a credential.
    """
    if sight.may_see(deployment_ref(name)):
        return dict(spec)
    rest = {key: masked_value(value, key) for key, value in spec.items() if key != "config"}
    return {key: _names(spec[key]) if key == "config" else rest[key] for key in spec}


def _names(config: Any) -> Any:
    return {key: _names(value) for key, value in config.items()} if isinstance(config, Mapping) else HIDDEN


class ReportSight:
    """What one viewer may see of one report's record. `widest_first` is as for `Sight.may_see`."""

    def __init__(self, sight: Sight, body: Record, *, widest_first: bool = True) -> None:
        self._sight, self._widest_first = sight, widest_first
        self._there = {key_of(action["ref"]): action["ref"] for action in body["plan"]["actions"] if exists(action)}
        self._listing_words = {display_name(reference(ref)) for ref in self._there.values()}

    def may_see(self, ref: Record) -> bool | None:
        return self._sight.may_see(reference(ref), widest_first=self._widest_first)

    def why_hidden(self, finding: Record) -> str:
        """Why no value of a finding is shown; "" where all are, or where there is none."""
        asked = [self.may_see(one) for one in self._made_of(finding)]
        return UNASKED if None in asked else "" if all(asked) else EXISTS

    def missing(self, finding: Record) -> list[ObjectRef]:
        """The objects that the viewer would have to get to see a finding whole, as far as somebody asked about them."""
        return [reference(one) for one in self._made_of(finding) if self.may_see(one) is False]

    def _made_of(self, finding: Record) -> list[Record]:
        """The objects of the cluster whose values a finding holds.

        What was found in several is held against all of their kind and namespace: they have both in common.
        """
        ref, sources = finding["ref"], list(finding.get("sources", []))
        is_live = self.is_live(finding)
        if ref and len({one["object"] for one in finding["evidence"].get(PLACES) or ()}) > 1:
            ref = {**ref, "name": ""}
        if sources:  # they are complete, but for the object itself
            return [*sources, ref] if is_live and ref not in sources else sources
        if not finding["serverWords"] and not (is_live and (finding["evidence"] or is_secret(ref))):
            return []
        # What is said of no single object may be made of any.
        return [ref] if ref else list(self._there.values())

    def is_live(self, finding: Record) -> bool:
        """Whether the cluster holds the object of a finding, or one of those that it was found in as well."""
        ref, listed = finding["ref"], finding["evidence"].get(PLACES) or ()
        return bool(ref) and (
            key_of(ref) in self._there or any(place["object"] in self._listing_words for place in listed)
        )

    def finding(self, finding: Record) -> Record:
        words = self.why_hidden(finding)
        return withheld(finding, words) if words else finding

    def action(self, planned: Record) -> Record:
        """A planned action as this viewer may know it; `hidden` says why there is no more of it."""
        if exists(planned):
            return planned if self.may_see(planned["ref"]) else hidden_action(planned)
        planned = self.new_object(planned)
        if not (planned["serverWords"] or planned["warnings"]):
            return planned
        return planned if self.may_see(planned["ref"]) else {**planned, "serverWords": "", "warnings": []}

    def new_object(self, planned: Record) -> Record:
        """A planned action on what does not exist yet, without values of Secrets that this viewer may not get."""
        shown = {name: value for name, value in planned.items() if name != SECRET_TEXTS}
        if (kept := planned.get(SECRET_TEXTS)) and not all(map(self.may_see, kept["secrets"])):
            words = f"hidden: it holds a value of {some([str(reference(one)) for one in kept['secrets']])}"
            shown["after"] = without_texts(planned["after"], kept["paths"], words)
        return shown

    def private(self, body: Record) -> list[Record]:
        """The findings about someone else's objects that this viewer may get; of those alone is told who holds them."""
        narrowed = (self._owned(finding) if finding["rule"] == OWNERS else finding for finding in body["private"])
        return [one for one in narrowed if one and self._may_see_of(one) and not self.why_hidden(one)]

    def _may_see_of(self, finding: Record) -> bool:
        return not finding["ref"] or bool(self.may_see(finding["ref"]))

    def _owned(self, finding: Record) -> Record | None:
        """The finding about one owner's objects, of them those that this viewer may get; None where that is none."""
        seen = [source for source in finding["sources"] if self.may_see(source)]
        owner, refs = str(finding["evidence"]["owner"]), [reference(one) for one in seen]
        if len(seen) == len(finding["sources"]):
            return finding
        told = say_owner(owner, refs)
        shown = {"evidence": dict(told.evidence), "serverWords": told.message, "sources": seen}
        return {**finding, **shown} if seen else None


def exists(planned: Record) -> bool:
    """Whether a planned action is about an object that the cluster holds."""
    return planned["before"] is not None or planned["action"] == Action.ADOPT


def hidden_action(planned: Record) -> dict[str, Any]:
    """What everybody may know of a planned action on an object that exists: its name, and what is to be done.

    Of a Secret not even that: "update" and "none" would tell whether it equals the bundle's. Of someone else's object
    not whether the API server takes what would come of it: that tells how it differs. That it is in the way is told.
    """
    is_telling = is_secret(planned["ref"]) and planned["action"] in (Action.UPDATE, Action.NONE)
    kept = {
        "ref": planned["ref"],
        "action": HIDDEN if is_telling else planned["action"],
        "hidden": EXISTS,
        "uid": "",
        "resourceVersion": "",
        "before": None,
        "after": None,
        "isProved": True,
        "warnings": [],
        "problem": "",
        "problemCode": "",
        "notes": [],
        "serverWords": "",
    }
    if is_telling or is_private(planned):
        return kept
    if is_in_the_way(planned):
        return {**kept, "isProved": False, **{name: planned[name] for name in ("problem", "problemCode")}}
    return {**kept, **{name: planned[name] for name in ("isProved", "problem", "problemCode", "notes")}}


def is_private(planned: Record) -> bool:
    """As provisioner.review.visibility.fact_views.is_private, of a record."""
    return bool(planned["action"] == Action.ADOPT and planned["problemCode"] != AlreadyExists.code)


def is_in_the_way(planned: Record) -> bool:
    """Whether a planned action meets someone else's object that is not to be adopted."""
    return bool(planned.get("problemCode") == AlreadyExists.code)


def private_to_judge(body: Record) -> list[dict[str, Any]]:
    """The private findings of a report that guards and limits count: those about objects that are to be adopted.

    Of a plan that meets objects of others that are not to be adopted none: nobody can approve it, and what comes of the
    question is seen by people who may not get these objects. Nor those made of a Secret of ours or of an old name: what
    guards make of them would tell whether values are the same (S38). Of each Secret that exists there is SEC-07.
    """
    actions = body["plan"]["actions"]
    if any(map(is_in_the_way, actions)):
        return []
    adopted = {key_of(action["ref"]) for action in actions if action["action"] == Action.ADOPT}
    return [finding for finding in body.get("private", []) if _is_about(finding, adopted)]


def _is_about(finding: Record, objects: set[tuple[str, ...]]) -> bool:
    named = [ref for ref in (finding.get("ref"), *finding.get("sources", ())) if ref]
    return not named or any(key_of(ref) in objects for ref in named)


def withheld(finding: Record, words: str = EXISTS) -> dict[str, Any]:
    """A finding's record without live values; `words` say why nothing else is there.

    Which message it was, and what was added to it, go with them. Of a Secret the rules, the message and the path go as
    well: they would tell how it differs from the bundle's.
    """
    kept = {name: value for name, value in finding.items() if name not in ("variant", "notes")}
    unseen = {**kept, "evidence": {"hidden": words}, "serverWords": ""}
    if finding["serverWords"]:
        unseen["path"] = []
    if not finding["ref"] or not is_secret(finding["ref"]):
        return unseen
    unseen.pop("also", None)
    return {**unseen, "rule": "", "message": words, "path": []}


def without_values(field: Record) -> dict[str, Any]:
    """A field of a drift as everybody may know it."""
    return {**field, "path": public_place(field["path"], field["change"]), "expected": "", "found": ""}


def said_of(sight: Sight, request: models.Request) -> list[str]:
    """What the API server, or Helm, said of the problem of a request: what is made of objects that this viewer may
    get."""
    made_of = [(one["words"], [one["ref"], *one.get("also", ())]) for one in request.server_words]
    return [words for words, refs in made_of if all(sight.may_see(reference(ref)) for ref in refs)]


def show_words(sight: Sight, row: models.Outcome) -> models.Outcome:
    """The row, not saved, without the server's words where this viewer may not get the object that they are about."""
    if (row.server_words or row.warnings) and not (row.about and sight.may_see(reference(row.about))):
        row.server_words, row.warnings = "", []
    return row


def is_secret(ref: Record) -> bool:
    return (ref["group"], ref["kind"]) == ("", "Secret")


def new_objects(body: Record) -> frozenset[tuple[str, ...]]:
    """The keys of the planned objects that the cluster does not hold."""
    return frozenset(key_of(action["ref"]) for action in body["plan"]["actions"] if not exists(action))


def is_of_stored_secret(finding: Record, new: Collection[tuple[str, ...]]) -> bool:
    """Whether a finding is about a Secret, or made of one, that is not among the `new` objects."""
    named = [ref for ref in (finding["ref"], *finding.get("sources", ())) if ref]
    return any(is_secret(ref) and key_of(ref) not in new for ref in named)


def reference(record: Record) -> ObjectRef:
    return ObjectRef(record["group"], record["version"], record["kind"], record["namespace"], record["name"])


def key_of(ref: Record) -> tuple[str, ...]:
    """What makes two references of a report's record the same object, whatever version they are written in."""
    return (ref["group"], ref["kind"], ref["namespace"], ref["name"])


@dataclass(frozen=True, slots=True)
class HiddenWords:
    """How many findings are shown without their details, and the objects that the viewer would have to `get`."""

    count: int
    objects: list[str]


def own_words(finding: Record) -> Record:
    """A finding's record that the viewer may see whole, with its own words as its message."""
    if not finding["serverWords"]:
        return finding
    told = with_own_words(finding_from(finding))
    kept = {name: value for name, value in finding.items() if told.variant or name not in ("variant", "notes")}
    return {**kept, "message": told.message, "serverWords": "", "withheld": False}


def headline_for(sight: ReportSight, findings: Iterable[Record], public: list[str]) -> list[str]:
    """The `public` headline of a report in the words of its findings, as far as the viewer may see them."""
    told = [_told(finding, sight) for finding in findings]
    if not any(is_own for _, is_own in told):
        return public
    return list(own_headline([one for one, _ in told], public, Plan((), "")))


def unseen(sight: ReportSight, findings: Iterable[Record]) -> HiddenWords:
    """Of `findings` those that lack their details, with the rights that are missing."""
    hidden = [(finding, sight.missing(finding)) for finding in findings]
    objects = sorted({_listing_words(ref) for _, missing in hidden for ref in missing})
    return HiddenWords(sum(bool(missing) for _, missing in hidden), objects)


def _told(record: Record, sight: ReportSight) -> tuple[Finding, bool]:
    finding = finding_from(record)
    is_asked = bool(finding.server_words) and finding.severity.is_at_least(_WORTH_A_SENTENCE)
    if not is_asked or sight.why_hidden(record):
        return finding, False
    return with_own_words(finding), True


def _listing_words(ref: ObjectRef) -> str:
    if ref.name:
        return str(ref)
    return f"every {ref.group_kind} in {ref.namespace}" if ref.namespace else f"every {ref.group_kind}"


@dataclass(frozen=True, slots=True)
class SeenWorkloads:
    """`hidden_count` is how many objects that run pods, and are to stay or go, the viewer may not get, changed or
    not."""

    changes: list[WorkloadChange]
    hidden_count: int


def seen_workloads(sight: ReportSight, body: Record) -> SeenWorkloads:
    """What of a report's record runs, in the order of the plan, without hidden objects; an autoscaler that is hidden
    says nothing of how many pods there will be."""
    seen, hidden_count = [], 0
    for action in body["plan"]["actions"]:
        kind = reference(action["ref"]).group_kind
        is_running = action["action"] in RUNNING and runs_pods(kind)
        if not (is_running or is_autoscaler(kind)):
            continue
        if not exists(action) or sight.may_see(action["ref"]):
            seen.append(action_from(action))
        else:
            hidden_count += is_running
    return SeenWorkloads(workload_changes(Plan(tuple(seen), "")), hidden_count)
