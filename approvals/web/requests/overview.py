"""What a first look at a report shows: what stops the apply, how much it touches, and which rights frighten, and
of an apply what failed for which reason. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import urlencode

from approvals.access.sight import exists, is_private, is_secret, key_of, reference
from approvals.models import Outcome
from provisioner.api_groups import ADMISSION_GROUP
from provisioner.errors import InvalidObject
from provisioner.review.output.headline import objects_in_words
from provisioner.review.rules import rows_of, rule_text
from provisioner.values import RENAME, UNTOLD, Action, OutcomeState, PlannedAction, Section, Severity, count_objects

Record = Mapping[str, Any]
THIS = "this object"
COMMAND = ": kubectl "
MAX_NAMED = 5
STOPPING = ("PRE-01", "PRE-02", "PRE-03", "PRE-04", "PRE-05", "PRE-07", "PRE-08", "PRE-09")
NOT_FINE = (Severity.BREAKING, Severity.UNKNOWN)
CRD = "CustomResourceDefinition"
# What frightens, in this order: group, resource and its name for people; "*" in a rule stands for each of them.
FRIGHTENING = (
    ("", "secrets", "Secrets"),
    ("", "pods/exec", "pods/exec"),
    (ADMISSION_GROUP, "mutatingwebhookconfigurations", "Webhooks"),
    (ADMISSION_GROUP, "validatingwebhookconfigurations", "Webhooks"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "CRDs"),
    ("", "nodes", "Nodes"),
)
ORDER = ("*", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


WHOLE_CLUSTER = "whole cluster"
CAPABILITIES = ("Everything", "Read", "Write", "Delete", "Special")
# More accounts than this are told by their findings alone.
MAX_GRIDS = 20
MEANINGS = {
    "Everything": "every verb, including future ones",
    "Read": "get, list, watch",
    "Write": "create, update, patch",
    "Delete": "delete, deletecollection",
    "Special": "special verbs, such as bind, escalate or impersonate",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a remedy, and the command that does it, "" where it needs none."""

    words: str
    command: str


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason why it cannot be applied as it stands, and its objects. `query` lists its findings.

    `said` are the API server's own words, "" where there are none that the viewer may know. `steps` are what to do
    for the first of `names`, as its finding says.
    """

    words: str
    said: str
    what: str
    names: list[str]
    more: int
    query: str
    remedy: str
    steps: list[Step]


@dataclass(frozen=True, slots=True)
class Tile:
    """A number with its word and the address, relative to the request's, of what it counts."""

    number: int
    words: str
    where: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class Fright:
    """What an account gains on something that frightens; `query` leads to it in the graph of accounts."""

    account: str
    what: str
    verbs: str
    scope: str
    query: str


@dataclass(frozen=True, slots=True)
class FailedTogether:
    """Objects that failed, or were not tried, for the same reason, with what the API server said where the viewer may
    know it."""

    words: str
    server_words: str
    objects: list[str]


class BlockerSight(Protocol):
    """What one viewer may know of what stops a plan (S27)."""

    def said_of(self, action: Record, /) -> str: ...

    def steps_of(self, finding: Record, /) -> list[str]: ...


class _Nothing:
    """What everybody may know: neither what the API server said, nor the evidence of findings."""

    def said_of(self, _: Record, /) -> str:
        return ""

    def steps_of(self, _: Record, /) -> list[str]:
        return []


NOTHING = _Nothing()


def blockers(body: Record, sight: BlockerSight = NOTHING) -> list[Blocker]:
    """Why the plan cannot be applied as it stands, by reason, most objects first; of a private object nothing.

    What the dry run of the API server or the preflight refused, as far as the viewer may know it.
    Nor is anything said of a Secret in the cluster: that it is refused would tell how it differs (S09).
    """
    refused = [action for action in body["plan"]["actions"] if action["problem"] and not _is_hidden(action)]
    told = {key_of(action["ref"]) for action in refused}
    made = _refusals(body, refused, sight)
    stopping: dict[tuple[str, str], list[Record]] = {}
    for finding in body["findings"]:
        is_told = bool(finding["ref"]) and key_of(finding["ref"]) in told
        if finding["rule"] in STOPPING and finding["severity"] == Severity.BREAKING and not is_told:
            stopping.setdefault((finding["rule"], _explained_as(finding)), []).append(finding["ref"] or {})
    made += [_blocker(_title(row), refs, {"search": rule}, row) for (rule, row), refs in stopping.items()]
    return sorted(made, key=lambda one: -(len(one.names) + one.more))


def _refusals(body: Record, refused: list[Record], sight: BlockerSight) -> list[Blocker]:
    """What is refused for the same reason: that of the rule that knows it, else of the problem."""
    about = [finding for finding in reversed(body["findings"]) if finding["ref"]]
    general = {key_of(finding["ref"]): finding for finding in about if _may_stop(finding)}
    exact = {key_of(finding["ref"]): finding for finding in about if _is_why(finding)}
    reasons: dict[tuple[str, str, str, str], list[Record]] = {}
    for action in refused:
        key = key_of(action["ref"])
        # A webhook or a quota may refuse it as well: only of what is invalid a rule about its fields knows why.
        why = exact.get(key) if action["problemCode"] == InvalidObject.code else None
        told = why or general.get(key)
        rule, row = (told["rule"], _explained_as(told)) if told else ("", "")
        words = _title(rule) if why else _without_name(action["problem"], action["ref"])
        reasons.setdefault((words, _without_name(sight.said_of(action), action["ref"]), rule, row), []).append(
            action["ref"]
        )
    made = []
    for (words, said, rule, row), refs in reasons.items():
        first = exact.get(key_of(refs[0]))
        steps = sight.steps_of(first) if first and first["rule"] == rule else []
        blocker = _blocker(words, refs, {"search": rule or _kind(refs)}, row)
        made.append(replace(blocker, said=said, steps=[_step(step) for step in steps]))
    return made


def blocked_words(found: Iterable[Blocker]) -> str:
    """The sentence that stands first; "" where nothing stops it."""
    parts = [blocker.what for blocker in found]
    return f"As it stands this cannot be applied: {', '.join(parts)} would be refused." if parts else ""


def _step(text: str) -> Step:
    words, found, rest = text.partition(COMMAND)
    return Step(words, f"{COMMAND}{rest}".removeprefix(": ") if found else "")


def _is_hidden(action: Record) -> bool:
    return is_private(action) or (is_secret(action["ref"]) and exists(action))


def _may_stop(finding: Record) -> bool:
    return finding["section"] in (Section.PREFLIGHT, Section.OBJECTS) and finding["severity"] in NOT_FINE


def _is_why(finding: Record) -> bool:
    """Whether a finding tells more exactly than the dry run why the API server refuses its object."""
    refuses = finding.get("verdicts", {}).get("api") == Severity.BREAKING
    return bool(refuses and finding["section"] == Section.CRDS)


def _blocker(words: str, refs: list[Record], query: Mapping[str, str], rule: str) -> Blocker:
    names = list(dict.fromkeys(_namespaced_name(ref) for ref in refs if ref))
    count = max(len(names), 1)
    kind = _kind(refs)
    noun = "CRD" if kind == CRD else kind or "object"
    what = f"{count} {noun}{'' if count == 1 else 's'}"
    asked = urlencode({key: value for key, value in query.items() if value})
    more = max(len(names) - MAX_NAMED, 0)
    return Blocker(words, "", what, names[:MAX_NAMED], more, asked, _remedy(rule), [])


def _explained_as(finding: Record) -> str:
    """The id under which its rule, or the variant of it that was found, is explained."""
    return rows_of(finding["rule"], finding["evidence"])[0]


def _title(rule: str) -> str:
    words = rule_text(rule)
    return words.title if words else rule


def _remedy(rule: str) -> str:
    words = rule_text(rule) if rule else None
    return " ".join(words.do.split()) if words else ""


def _namespaced_name(ref: Record) -> str:
    return f"{ref['namespace']}/{ref['name']}" if ref["namespace"] else str(ref["name"])


def _kind(refs: list[Record]) -> str:
    kinds = {ref["kind"] for ref in refs if ref}
    return kinds.pop() if len(kinds) == 1 else ""


def _without_name(words: str, ref: Record) -> str:
    """The problem without the name of its object, so that the same reason of several objects is one."""
    place = _namespaced_name(ref)
    kind = f"{ref['kind']}.{ref['group']}" if ref["group"] else ref["kind"]
    for name in (f"apply {kind} {place}: ", f"{kind} {place}: ", f'{kind} "{ref["name"]}" is invalid: '):
        words = words.removeprefix(name)
    for name in (f"{kind} {place}", f"{ref['kind']} {place}", place):
        words = words.replace(name, THIS)
    return words


def objects_of(body: Record) -> Counter[str]:
    """How many objects a report does what to, the same for every viewer."""
    return count_objects(
        PlannedAction(
            reference(action["ref"]),
            Action(action["action"]),
            before=action["before"],
            returns_as=action.get("returnsAs", ""),
        )
        for action in body["plan"]["actions"]
    )


def plan_in_words(body: Record) -> str:
    """The same as the headline says it: `2 objects to change, 1 to create, 1 Secret that exists, 27 unchanged`."""
    counted = objects_of(body)
    more = [
        (counted[UNTOLD], _existing(counted[UNTOLD])),
        (counted[Action.ORPHAN], "kept"),
        (counted[Action.SKIP], "skipped"),
        (counted[Action.NONE], "unchanged"),
    ]
    told = [objects_in_words(counted), *(f"{count} {words}" for count, words in more if count)]
    return ", ".join(filter(None, told))


def tiles(body: Record) -> list[Tile]:
    """How much it touches, by what happens to it, and what goes with it."""
    counted = objects_of(body)
    made = [
        Tile(counted["create"], "created", "changes?action=create"),
        Tile(counted["update"], "changed", "changes?action=update"),
        Tile(counted["replace"], "replaced", "changes?action=replace", "bad"),
        Tile(counted["rerun"], "hooks run again", "changes?action=rerun"),
        Tile(counted["adopt"], "adopted", "changes?action=adopt", "bad"),
        Tile(counted["delete"], "deleted", "changes?action=delete", "bad"),
        Tile(counted[RENAME], "renamed", "changes?action=delete"),
        Tile(counted[UNTOLD], _existing(counted[UNTOLD]), "changes?kind=Secret"),
        Tile(counted["orphan"], "kept", "changes?action=orphan"),
    ]
    of_rights = sum(finding["section"] == Section.PERMISSIONS and finding["isNew"] for finding in body["findings"])
    of_crds = len({key_of(finding["ref"]) for finding in body["findings"] if finding["ref"] and _breaks_crd(finding)})
    made += [
        Tile(
            of_rights,
            _counted(of_rights, "change of permissions", "changes of permissions"),
            "findings#section-permissions",
        ),
        Tile(of_crds, _counted(of_crds, "CRD that breaks", "CRDs that break"), "findings#section-crds", "bad"),
    ]
    return [tile for tile in made if tile.number]


def _existing(count: int) -> str:
    return _counted(count, "Secret that exists", "Secrets that exist")


def _counted(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def _breaks_crd(finding: Record) -> bool:
    return finding["section"] == Section.CRDS and finding["isNew"] and finding["severity"] in ("critical", "breaking")


def tells_of_rights(finding: Record) -> bool:
    """Whether the evidence of a finding says which rights an account gains or loses."""
    evidence = finding["evidence"]
    return bool(evidence.get("subject") and (evidence.get("added") or evidence.get("table")))


def frights(findings: Iterable[Record]) -> list[Fright]:
    """What accounts gain on what frightens, out of the evidence of findings that the viewer may see."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for finding in findings:
        evidence = finding["evidence"]
        account = str(evidence.get("subject") or "")
        gained = evidence.get("added") or ()
        for rule in gained if account and isinstance(gained, list | tuple) else ():
            if isinstance(rule, Mapping):
                groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
                for group, resource, what in FRIGHTENING:
                    if ("*" in groups or group in groups) and ("*" in resources or resource in resources):
                        verbs.setdefault((account, what, str(rule.get("scope") or "")), set()).update(
                            rule.get("verbs") or ()
                        )
    ranks = {what: at for at, (_, _, what) in reversed(list(enumerate(FRIGHTENING)))}
    ordered = sorted(verbs.items(), key=lambda it: (it[0][0], ranks[it[0][1]], it[0][2]))
    return [
        Fright(account, what, ", ".join(_sorted(found)), scope or "whole cluster", urlencode({"account": account}))
        for (account, what, scope), found in ordered
    ]


def _sorted(verbs: Iterable[str]) -> list[str]:
    """Every verb alone says all; others in the order of reading, writing, deleting."""
    found = set(verbs)
    if "*" in found:
        return ["every verb"]
    return sorted(found, key=lambda it: (ORDER.index(it) if it in ORDER else len(ORDER), it))


def failed_together(outcomes: Iterable[Outcome]) -> list[FailedTogether]:
    """What failed, by reason, that of most objects first. A reason that names its object is told without the name."""
    return _together(outcome for outcome in outcomes if outcome.state == OutcomeState.FAILED)


def left_together(outcomes: Iterable[Outcome]) -> list[FailedTogether]:
    """What was not tried, in the same way."""
    return _together(outcome for outcome in outcomes if outcome.state == OutcomeState.SKIPPED)


def _together(outcomes: Iterable[Outcome]) -> list[FailedTogether]:
    found: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        words, said = (
            text.removeprefix(f"{outcome.object}: ").replace(outcome.object, "it")
            for text in (outcome.message, outcome.server_words)
        )
        found.setdefault((words, said), []).append(outcome.object)
    made = [FailedTogether(words, said, sorted(set(names))) for (words, said), names in found.items()]
    return sorted(made, key=lambda one: -len(one.objects))


@dataclass(frozen=True, slots=True)
class Cell:
    """How many rights come and go for one capability at one place."""

    gained: int
    lost: int

    @property
    def sign(self) -> str:
        if self.gained and self.lost:
            return "±"
        return "+" if self.gained else "–" if self.lost else ""

    @property
    def words(self) -> str:
        """For everybody: the sign is only a shape."""
        parts = [f"gains {self.gained}"] if self.gained else []
        parts += [f"loses {self.lost}"] if self.lost else []
        return ", ".join(parts) or "no change"


@dataclass(frozen=True, slots=True)
class GridRow:
    capability: str
    meaning: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """One account: `places` are the columns, the whole cluster first."""

    account: str
    places: tuple[str, ...]
    rows: tuple[GridRow, ...]


def grids(findings: Iterable[Mapping[str, Any]]) -> list[Grid]:
    """A grid per account, in the order of `findings`, whose evidence the viewer has to be allowed to see."""
    made: dict[str, Grid] = {}
    for finding in findings:
        evidence = finding["evidence"]
        subject, table = evidence.get("subject"), evidence.get("table")
        if subject and isinstance(table, Mapping) and table and subject not in made and len(made) < MAX_GRIDS:
            places = sorted(
                {place for row in table.values() for place in row}, key=lambda it: (it != WHOLE_CLUSTER, it)
            )
            rows = [
                GridRow(name, MEANINGS[name], tuple(_cell(table[name].get(place, {})) for place in places))
                for name in CAPABILITIES
                if name in table
            ]
            made[subject] = Grid(str(subject), tuple(places), tuple(rows))
    return list(made.values())


def _cell(counts: Mapping[str, int]) -> Cell:
    return Cell(counts.get("added", 0), counts.get("removed", 0))
