"""Which findings say more than the bundle does: those that live objects decide are told apart from all others (S09).

Everybody who may read a request reads the words of its findings; a live value only people who may get the object. So
the checks look twice: at what will be, as the cluster would store it, and at the same without anything that only live
objects hold. What comes out the same was said of the bundle. What does not keeps its rule and its severity, and its
words become values of the objects that decide it. Of an object that nobody else wrote to, defaults are no live values,
and only checks that read more of the cluster look again (`looks`). About someone else's object even that there is such
a finding would tell how it differs, so that the finding is private. What objects beside the plan decide, such as
roles, is told apart in `beside`.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace

from provisioner.review import beside
from provisioner.review.base.facts import SECRET, Facts
from provisioner.review.beside import Key, Look, key_of, words_without_details
from provisioner.review.foreign import Said, all_said, bundle_of, is_told_apart, told_apart, with_plan, without_foreign
from provisioner.review.origins import of_origins, without_origins
from provisioner.review.server_fields import holds_choices, is_as_wished
from provisioner.values import Action, Finding, ObjectIdentity, PlannedAction

# What of a plan is made of live objects; of a deletion only counts and sizes are told.
_MERGED = frozenset({Action.UPDATE, Action.REPLACE, Action.NONE})

# So often the checks look to find out which of several objects of ours decide a finding; of more objects it is all.
MAX_LOOKS = 8


def looked(facts: Facts, look: Look) -> list[Finding]:
    """What `look` finds, with the words that live objects decide kept apart, and what is private marked."""
    if facts.bundle is None:
        return look(facts)

    def withheld(finding: Finding) -> Finding:
        return _of_live(finding, facts)

    plain = without_origins(facts)
    if not any(is_told_apart(one) for one in facts.plan.actions):
        found = look(plain)
        return [*_told(plain, look, found), *of_origins(facts, look, found, withheld)]
    public = without_foreign(plain)
    told = look(public)
    known = {key_of(one) for one in told}
    private = [one for one in look(plain) if key_of(one) not in known]
    apart = told_apart(plain, look, private, withheld=withheld, own=_without_live)
    return [*_told(public, look, told), *apart, *of_origins(without_foreign(facts), look, told, withheld)]


def _told(facts: Facts, look: Look, found: list[Finding]) -> list[Finding]:
    wished = bundle_of(facts)
    withheld = found
    if any(_is_merged(one) or holds_choices(one, wished.get(one.ref.identity)) for one in facts.plan.actions):
        withheld = _with_makers(facts, look, found, _withheld(facts, found, look(_without_live(facts))))
    return beside.told_apart(facts, look, found, withheld)


def _with_makers(facts: Facts, look: Look, found: list[Finding], withheld: list[Finding]) -> list[Finding]:
    """`withheld`, with the objects of ours whose live values decide each, where that is not its own object alone.

    They are numbered, and for each digit of the binary numbers the checks look at those that have it and at those that
    have it not. What is said at each look that shows an object, is made of no other.
    """
    pairs = list(zip(found, withheld, strict=True))
    wanted = [all_said(one) for one, shown in pairs if shown.is_withheld and not one.is_withheld]
    wished = bundle_of(facts)
    refs = [one.ref for one in facts.plan.actions if _holds_more(one, wished.get(one.ref.identity), facts)]
    digits = (len(refs) - 1).bit_length() if wanted and refs else 0
    told: dict[tuple[int, bool], set[Said]] = {}
    for key in ((digit, bit) for digit in range(digits if 2 * digits <= MAX_LOOKS else 0) for bit in (False, True)):
        shown_refs = frozenset(ref.identity for at, ref in enumerate(refs) if _has_digit(at, key))
        told[key] = {all_said(one) for one in look(_without_live(facts, shown_refs))}

    def with_makers(one: Finding, shown: Finding) -> Finding:
        own = [at for at, ref in enumerate(refs) if one.ref and ref.identity == one.ref.identity]
        for at in (*own, *range(len(refs))) if len(told) == 2 * digits else ():
            if all(all_said(one) in said for key, said in told.items() if _has_digit(at, key)):
                return shown if at in own else replace(shown, sources=(*shown.sources, refs[at]))
        return replace(shown, sources=(*shown.sources, *refs))

    return [with_makers(one, shown) if shown.is_withheld and not one.is_withheld else shown for one, shown in pairs]


def _has_digit(number: int, digit: tuple[int, bool]) -> bool:
    return bool(number >> digit[0] & 1) is digit[1]


def _holds_more(planned: PlannedAction, bundle: PlannedAction | None, facts: Facts) -> bool:
    """Whether a finding may be made of what the cluster alone holds of it. Of a Secret there is never a value."""
    if planned.ref.group_kind == SECRET:
        return False
    is_read = _is_merged(planned) and planned.ref.identity in facts.live
    return is_read or _bare(planned, bundle) is not planned or holds_choices(planned, bundle)


def _without_live(facts: Facts, shown: frozenset[ObjectIdentity] = frozenset()) -> Facts:
    """`facts` as if the cluster held of our objects exactly what was approved before, and nothing else of them, but for
    the objects `shown`."""
    wished = bundle_of(facts)
    known = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    actions = tuple(
        one if one.ref.identity in shown else _bare(one, wished.get(one.ref.identity)) for one in facts.plan.actions
    )
    merged = {one.ref.identity for one in facts.plan.actions if _is_merged(one)} & known.keys() - shown
    bare = with_plan(facts, actions, {identity: known[identity] for identity in merged})
    return replace(bare, choices_of=shown)


def _is_merged(planned: PlannedAction) -> bool:
    return planned.before is not None and planned.action in _MERGED


def _bare(planned: PlannedAction, bundle: PlannedAction | None) -> PlannedAction:
    """`planned` without what only the cluster holds of it; the same object where that is nothing, or was chosen."""
    if not _is_merged(planned) or bundle is None or is_as_wished(planned, bundle):
        return planned
    before = bundle.before if bundle.before is not None else bundle.after
    return replace(planned, before=before, after=bundle.after)


def _withheld(facts: Facts, found: list[Finding], bare: list[Finding]) -> list[Finding]:
    """`found`, the words of each that `bare` has not kept as values of its object.

    What both have is named by the fingerprint that the bundle alone gives it: the other may be made of live values.
    """
    names: dict[Key, list[str]] = defaultdict(list)
    for one in bare:
        names[key_of(one)].append(one.fingerprint)
    exact = {id(one) for one in found if _taken(names[key_of(one)], one.fingerprint)}
    made = []
    for one in found:
        rest = names[key_of(one)]
        if id(one) in exact:
            made.append(one)
        elif rest:
            made.append(replace(one, fingerprint=rest.pop(0)))
        else:
            made.append(_of_live(one, facts))
    return made


def _taken(names: list[str], name: str) -> bool:
    if name not in names:
        return False
    names.remove(name)
    return True


def _of_live(finding: Finding, facts: Facts) -> Finding:
    """Its fingerprint takes in the uids, which nobody can guess who may not get the objects: values could be."""
    uids = {one.ref.identity: one.uid for one in facts.plan.actions if one.uid}
    salt = uids.get(finding.ref.identity, "") if finding.ref else ""
    named = "\n".join([finding.fingerprint, *([salt] if salt else sorted(uids.values()))])
    return replace(
        finding,
        message=words_without_details(finding),
        server_words="; ".join(filter(None, [finding.message, finding.server_words])),
        is_withheld=True,
        fingerprint=hashlib.sha256(named.encode()).hexdigest(),
    )
