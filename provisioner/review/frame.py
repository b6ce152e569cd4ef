"""Facts in, report out. The checks are the values of `Check` in the modules below checks/.

Nothing that a check does can make a report say less: a check that crashes, a fact that is missing and a change that no
check looks at are findings themselves (promise 4).
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import PurePath
from pkgutil import walk_packages
from typing import Any, TypeVar

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import PluginFailed
from provisioner.plugins import Plugin
from provisioner.review import checks as check_rooms
from provisioner.review import plugin_checks
from provisioner.review.base.causes import known_by, said_by_cause
from provisioner.review.base.facts import (
    SECRET,
    Check,
    Facts,
    Listing,
    Reads,
    ReviewRule,
    StateFacts,
    fingerprint,
    nothing,
)
from provisioner.review.base.grouping import folded
from provisioner.review.base.renames import renamed
from provisioner.review.base.renames import renames as find_renames
from provisioner.review.crds.live_findings import told_by_crd
from provisioner.review.judged.unjudged_fields import unjudged
from provisioner.review.output.headline import headline
from provisioner.review.preflight.findings import questions as preflight_questions
from provisioner.review.preflight.findings import said_once
from provisioner.review.rights.renamed_roles import under_new_names, with_renamed_roles
from provisioner.review.secret_texts import kept_apart
from provisioner.review.visibility.fact_views import Looks, is_foreign
from provisioner.review.visibility.finding_views import mark_findings
from provisioner.values import (
    AccessRequest,
    Action,
    Content,
    Finding,
    ObjectRef,
    Plan,
    Report,
    Section,
    Severity,
    worst_first,
)

_T = TypeVar("_T")


def find_checks() -> tuple[Check, ...]:
    """Return every Check that a module below `checks` defines, sorted by module; in a module, in their order there."""
    modules = walk_packages(check_rooms.__path__, f"{check_rooms.__name__}.")
    paths = sorted(module.name for module in modules if not module.ispkg)
    values = (value for path in paths for value in vars(import_module(path)).values() if isinstance(value, Check))
    return tuple({id(check): check for check in values}.values())


CHECKS = find_checks()
# What decides whether a field is judged: what pods read, and what the server chose.
JUDGED_BY = frozenset({Reads.LIVE, Reads.CHOICES})


def report(facts: Facts, checks: Sequence[Check] | None = None, running: Report | None = None) -> Report:
    """The report on `facts` by `checks`, by default all that are installed. Never raises for what a check does.

    What `running`, the report of what runs, has as well is not new.
    """
    asked = installed_checks() if checks is None else checks
    # Whether one is renamed would tell what a role or binding of somebody else's gives (S09).
    if not any(planned.ref.group == RBAC_GROUP for planned in facts.plan.actions if is_foreign(planned)):
        facts = with_renamed_roles(facts)
    findings = mark_findings(facts, partial(_found, asked, Looks()))
    once = _once(findings)
    private = tuple(finding for finding in once if finding.is_private)
    public = tuple(folded(said_by_cause(finding for finding in once if not finding.is_private)))
    if facts.bundle is not None:
        public, private = (tuple(kept_apart(some, facts.content, facts.plan)) for some in (public, private))
    if running is not None:
        public, private = known_by(public, running.public), known_by(private, running.private)
    public = worst_first(public)
    wished = {manifest.ref.identity for manifest in facts.content.manifests}
    staying = (planned for planned in facts.plan.actions if planned.action in (Action.NONE, Action.ORPHAN))
    let_go = sum(planned.ref.identity not in wished for planned in staying)
    # What is private is not counted either: who may not get the object would see that it differs.
    hooks = {manifest.ref.identity for manifest in facts.content.manifests if manifest.hook}
    words = headline(public, facts.plan, let_go=let_go, hooks=hooks, hides_secrets=facts.bundle is not None)
    return Report(words, worst_first([*public, *private]), facts.plan)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Of findings with one fingerprint the worst and newest.

    What is private takes the place of none that all readers see, and who accepts the one has not accepted the other.
    """
    everything = list(findings)
    public = {finding.fingerprint for finding in everything if not finding.is_private}
    found: dict[str, Finding] = {}
    for finding in everything:
        name = finding.fingerprint
        if finding.is_private and name in public:
            name = fingerprint(finding.rule, finding.ref, finding.path, ["private", name])
        named = finding if name == finding.fingerprint else replace(finding, fingerprint=name)
        found[name] = min(
            found.get(name, named), named, key=lambda finding: (finding.severity.rank, not finding.is_new)
        )
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Run:
    """What a check found, and its crash."""

    check: Check
    found: tuple[Finding, ...]
    crash: Finding | None = None


def _found(checks: Sequence[Check], looks: Looks, facts: Facts) -> list[Finding]:
    findings: list[Finding] = []
    for gap in facts.gaps:
        rule = ReviewRule("GAP", gap.section, Severity.UNKNOWN)
        findings.append(rule.finding("not-read", None, key=gap.what, what=gap.what, why=gap.why))
    given = {reads: looks.given(facts, reads) for reads in {check.given for check in checks} | {JUDGED_BY}}
    runs = [looks.once((_run_check, id(check)), given[check.given], partial(_run_check, check)) for check in checks]
    for run in runs:
        findings += [*run.found, *([run.crash] if run.crash else [])]
    sound = [run.check for run in runs if run.crash is None]
    judging = (_unjudged, *map(id, sound))
    findings += looks.once(judging, given[JUDGED_BY], partial(_unjudged, sound, checks))
    for check in sound:
        findings = _settled(check, given[check.given], findings)
    if facts.hides_old_names:
        # What a Secret was before is told to nobody, and so not that a finding of it is known already (S38).
        of_secrets = {finding.ref for finding in findings if finding.ref and finding.ref.group_kind == SECRET}
        findings = [replace(finding, is_new=True) if finding.ref in of_secrets else finding for finding in findings]
    return told_by_crd(said_once(findings))


def wanted(content: Content, plan: Plan, checks: Sequence[Check] | None = None) -> list[ObjectRef]:
    """The live objects that checks want to see, sorted; never a Secret. A check that crashes here wants nothing."""
    asked = installed_checks() if checks is None else checks
    refs = _asked([(check, check.wants) for check in asked], (content, plan), ObjectRef)
    return sorted(ref for ref in refs if ref.group_kind != SECRET)


def mentioned(facts: Facts, checks: Sequence[Check] | None = None) -> list[ObjectRef]:
    """The objects of which checks want to know whether they exist, sorted."""
    asked = checks or installed_checks()
    return sorted(_asked([(check, check.mentions) for check in asked], (facts,), ObjectRef))


def listings(facts: Facts, checks: Sequence[Check] | None = None) -> list[Listing]:
    """The lists that checks want to see, sorted; of Secrets never more than their metadata."""
    asked = _asked([(check, check.lists) for check in checks or installed_checks()], (facts,), Listing)
    return sorted(
        {
            replace(listing, metadata_only=True) if listing.kind == SECRET.kind and not listing.group else listing
            for listing in asked
        }
    )


def questions(facts: Facts) -> list[AccessRequest]:
    """What to ask the API server about the installer before the report; again until nothing is left."""
    try:
        return preflight_questions(facts)
    except Exception:  # noqa: BLE001 -- the check of the preflight then crashes as well and says so
        return []


def _asked(
    questions: Iterable[tuple[Check, Callable[..., Iterable[_T]]]], given: tuple[Any, ...], kind: type[_T]
) -> set[_T]:
    questions = [(check, ask) for check, ask in questions if ask is not nothing]
    shown = plugin_checks.shown(given, [check for check, _ in questions])
    found: set[_T] = set()
    for check, ask in questions:
        try:
            found.update(plugin_checks.asked(check, partial(ask, *(shown if check.plugin else given)), kind))
        except Exception:  # noqa: BLE001, S112 -- the same check then misses its facts and says so
            continue
    return found


def _unjudged(sound: Sequence[Check], everything: Sequence[Check], facts: Facts) -> list[Finding]:
    """What no sound check judges: a check that crashed judged nothing, whatever it claims."""
    claimed, known = ([claim for check in checks for claim in check.claims] for checks in (sound, everything))
    try:
        return [_with_fingerprint(finding) for finding in unjudged(facts, claimed, known)]
    except Exception as exc:  # noqa: BLE001 -- as in _run
        return [_of_crash(Check("unjudged"), exc)]


def _settled(check: Check, facts: Facts, findings: list[Finding]) -> list[Finding]:
    """What a check makes of all findings; they stay as they were where it crashes or drops one."""
    if check.settles is None:
        return findings
    try:
        settled = [_with_fingerprint(finding) for finding in check.settles(facts, tuple(findings))]
        lost = {finding.fingerprint for finding in findings} - {finding.fingerprint for finding in settled}
        if lost:
            raise LookupError("findings were dropped")
    except Exception as exc:  # noqa: BLE001 -- as in _run
        return [*findings, _of_crash(check, exc)]
    return settled


def installed_checks() -> tuple[Check, ...]:
    """Ours and those of other packages (entry points `pratique.checks`, each naming a Check)."""
    return (*CHECKS, *plugin_checks.plugged_checks(_names()))


def check_plugins() -> list[Plugin]:
    """The checks of other packages, loaded, each with its problem if it is disabled."""
    return plugin_checks.check_plugins(_names())


def _names() -> frozenset[str]:
    return frozenset(check.name for check in CHECKS)


def _former(facts: Facts) -> StateFacts | None:
    """What was before under the names that objects have now, None where none is renamed."""
    try:
        return under_new_names(facts, renamed(facts, find_renames(facts)))
    except Exception:  # noqa: BLE001 -- the check of renames then crashes as well and says so
        return None


def _run_check(check: Check, facts: Facts) -> _Run:
    """Run one check; what it had found before it crashed is kept."""
    found: list[Finding] = []
    shown = plugin_checks.shown(facts, [check])
    try:
        plugin_checks.run(check, partial(_look, check, shown, found))
    except Exception as exc:  # noqa: BLE001 -- whatever a check raises, the reader has to know that it did not finish
        return _Run(check, tuple(found), crash=_of_crash(check, exc))
    return _Run(check, tuple(found))


def _look(check: Check, facts: Facts, found: list[Finding]) -> None:
    """Put what a check finds into `found`, one by one, so that it is kept."""
    if check.plugin:
        plugin_checks.ask_again(check, facts)
    for finding in check.changes(facts):
        found.append(_taken(check, finding, found))
    known: dict[str, list[Severity]] = defaultdict(list)
    for state in (facts.previous_state(), facts.once("state under the names of now", _former)):
        for finding in check.standing(state) if state is not None else ():
            named = _taken(check, finding)
            known[named.fingerprint].append(named.severity)
    for finding in check.standing(facts.state()):
        named = _taken(check, finding, found)
        # What became worse is new (as in `known_by`).
        is_known = any(severity.is_at_least(named.severity) for severity in known[named.fingerprint])
        found.append(replace(named, is_new=not is_known))


def _taken(check: Check, finding: Finding, before: Sequence[Finding] = ()) -> Finding:
    return _with_fingerprint(plugin_checks.sound(finding, len(before)) if check.plugin else finding)


def _with_fingerprint(finding: Finding) -> Finding:
    if finding.fingerprint:
        return finding
    return replace(finding, fingerprint=fingerprint(finding.rule, finding.ref, finding.path, dict(finding.evidence)))


def _of_crash(check: Check, exc: Exception) -> Finding:
    """The exception's own words stay out: they may quote a value of the content."""
    rule = ReviewRule("CRASHED", Section.CONTENT, Severity.UNKNOWN)
    name, error = check.name, type(exc).__name__
    if check.plugin and isinstance(exc, PluginFailed):
        package = check.plugin.package
        return rule.finding("plugin-failed", None, key=name, check=name, error=error, words=str(exc), package=package)
    last = traceback.extract_tb(exc.__traceback__)[-1]
    place = f"{PurePath(last.filename).name}:{last.lineno}"
    return rule.finding("crashed", None, key=name, check=name, error=error, place=place)
