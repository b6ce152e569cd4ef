"""What a bundle carries in itself: secret values, text that hides, values and hooks of its chart, what the chart looked
up, files that nobody used, and keys that are there twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any

import orjson

from provisioner.api_groups import OWN_GROUP
from provisioner.escaping import hidden_characters, pretending_words, visible
from provisioner.json_values import mapping
from provisioner.masking import masked
from provisioner.retention import KINDS_WITH_CONSEQUENCE, LOSES_NOTHING
from provisioner.review.base.claims import EVERY_KIND, Claim
from provisioner.review.base.difference import MAX_FULL, DiffLine, all_lines, in_pieces, replaced_lines
from provisioner.review.base.facts import SECRET, STATED, Check, Facts, FieldPath, ReviewRule, StateFacts, said
from provisioner.review.rules.messages import VARIANT
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import (
    DELETING,
    Action,
    Finding,
    JsonObject,
    Manifest,
    ObjectRef,
    PlannedAction,
    RepeatEffect,
    Section,
    Severity,
)

_SECRET_VALUES = ReviewRule("SEC-01", Section.CONTENT, Severity.DANGEROUS)
_HIDDEN_TEXT = ReviewRule("TXT-01", Section.CONTENT, Severity.DANGEROUS)
_PRETENDING_NAME = ReviewRule("TXT-02", Section.CONTENT, Severity.DANGEROUS)
_FOREIGN_NAME = ReviewRule("TXT-04", Section.CONTENT, Severity.NOTABLE)
_PRETENDING_TEXT = ReviewRule("TXT-03", Section.CONTENT, Severity.NOTABLE)
_UNSEEN = ReviewRule("TXT-05", Section.OBJECTS, Severity.UNKNOWN)
_VALUES_CHANGED = ReviewRule("VAL-01", Section.CONTENT, Severity.NOTABLE)
_RUNS = ReviewRule("HOOK-01", Section.OBJECTS, Severity.NOTABLE)
_RUNS_NOTHING = ReviewRule("HOOK-01", Section.OBJECTS, Severity.SAFE)
_LATER = ReviewRule("HOOK-02", Section.OBJECTS, Severity.NOTABLE)
_LEFT = ReviewRule("HOOK-03", Section.OBJECTS, Severity.NOTABLE)
_LOOKED_UP = ReviewRule("LKP-01", Section.CONTENT, Severity.NOTABLE)
_GOES_ELSEWHERE = ReviewRule("LKP-01", Section.CONTENT, Severity.DANGEROUS)
_COMPARED = ReviewRule("LKP-02", Section.CONTENT, Severity.UNKNOWN)
_READABLE_UNUSED = ReviewRule("SRC-01", Section.CONTENT, Severity.NOTABLE)
_OTHERS_UNUSED = ReviewRule("SRC-01", Section.CONTENT, Severity.SAFE)
_REPEATED = {
    RepeatEffect.EQUAL: ReviewRule("SRC-04", Section.CONTENT, Severity.SAFE),
    RepeatEffect.FILLED: ReviewRule("SRC-04", Section.CONTENT, Severity.NOTABLE),
    RepeatEffect.EMPTIED: ReviewRule("SRC-04", Section.CONTENT, Severity.DANGEROUS),
}

MAX_PER_OBJECT = 20
MAX_SHOWN_VALUES = 200
# As many as a content keeps.
MAX_VALUES = 5_000
# As JSON writes characters that cannot be seen: all but the ends of lines and tabs, which are text.
_ESCAPED_CONTROL = re.compile(rb"\\[^nrt\"]")
# Words that a person or a program takes as names; elsewhere a text is prose.
_NAMING = frozenset(
    {"name", "namespace", "image", "host", "url", "serviceAccountName", "apiVersion", "kind", "verbs", "resources"}
    | {"resourceNames", "apiGroups", "nonResourceURLs", "labels", "matchLabels", "command"}
)
# Go's sign of a microsecond, which stands in its pattern of durations, and so in many CRDs. It is still shown escaped.
_MICROSECOND = visible("\u00b5s")
# Nothing of these actions is hidden in a long line: nothing changes, or all of the object goes.
_WITHOUT_LINES = frozenset({Action.NONE, Action.SKIP, Action.DELETE})
# Whoever may get all of them may get the one whose name nobody gave.
_DEPLOYMENT = ObjectRef(OWN_GROUP, "v1alpha2", "BundleDeployment", "", "")


def judge_content(state: StateFacts) -> Iterator[Finding]:
    """Find secret values in the bundle, and text that hides or pretends (S24)."""
    looked_up = {key for lookup in state.lookups for key in lookup.keys}
    for ref, obj in state.named:
        if ref.group_kind == SECRET:
            # Keys whose values come from the cluster (LKP-01) are not the bundle's; a chart may leave out the
            # namespace of its installation.
            places = [f"{ref.namespace}/{ref.name}/"] + [f"{ref.name}/"] * (ref.namespace == state.install_namespace)
            others = {key.removeprefix(place) for key in looked_up for place in places if key.startswith(place)}
            parts = (mapping(obj.get(part)) for part in ("data", "stringData"))
            filled = {str(key) for part in parts for key, value in part.items() if value not in ("", None)}
            written = state.written.get(ref.identity)
            if keys := sorted(filled - others if written is None else (filled & written) - others):
                yield _SECRET_VALUES.finding("values-in-bundle", ref, key=keys, keys=keys)
        text = {
            key: value for key, value in obj.items() if ref.group_kind != SECRET or key not in {"data", "stringData"}
        }
        yield from islice(_judge_texts(ref, text), MAX_PER_OBJECT)


def _judge_texts(ref: ObjectRef, obj: JsonObject) -> Iterator[Finding]:
    for path, text, is_name in _find_texts(obj, (), False) if not _is_plain(obj) else ():
        hidden, words = hidden_characters(text), pretending_words(text)
        if not is_name:
            words = [word for word in words if word != _MICROSECOND]
        if hidden:
            yield _HIDDEN_TEXT.finding(
                "hidden", ref, where=path, key=hidden, characters=hidden, text=visible(text)[:500]
            )
        if words:
            rule, words = _PRETENDING_NAME if is_name else _PRETENDING_TEXT, words[:20]
            yield rule.finding("look-alikes", ref, where=path, key=words, words=words)
        elif is_name and not text.isascii() and not hidden:
            yield _FOREIGN_NAME.finding("beyond-ascii", ref, where=path, key=text, text=visible(text)[:500])


def _is_plain(obj: JsonObject) -> bool:
    """Whether all texts and keys are ASCII that can be seen: the whole object tells it at once, and nearly all are."""
    try:
        written = orjson.dumps(obj)
    except TypeError:
        return False
    return written.isascii() and b"\x7f" not in written and not _ESCAPED_CONTROL.search(written.replace(rb"\\", b""))


def _find_texts(value: object, path: FieldPath, is_name: bool) -> Iterator[tuple[FieldPath, str, bool]]:
    """Yield (path, text, whether it is a name) of each text that is not plain ASCII, and of each such key."""
    if isinstance(value, str):
        if not (value.isascii() and value.isprintable()):
            yield path, value, is_name
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str) and not (key.isascii() and key.isprintable()):
                yield (*path, key), key, True
            yield from _find_texts(inner, (*path, str(key)), is_name or key in _NAMING)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _find_texts(inner, (*path, index), is_name)


def compare_lines(facts: Facts) -> Iterator[Finding]:
    """Find changes that no reader can be shown, so that nobody can have reviewed them (S41)."""
    for planned in facts.plan.actions:
        is_shown = planned.action in _WITHOUT_LINES or planned.ref.group_kind == SECRET
        if is_shown or not (_has_long_line(planned.before) or _has_long_line(planned.after)):
            continue
        if count := _count_unseen(planned):
            yield _UNSEEN.finding("unseen", planned.ref, key=count, characters=count, limit=MAX_FULL)


def _has_long_line(value: object) -> bool:
    if isinstance(value, str):
        return len(value) > MAX_FULL and max(map(len, value.split("\n"))) > MAX_FULL
    if isinstance(value, Mapping):
        return any(_has_long_line(part) for item in value.items() for part in item)
    return isinstance(value, list) and any(map(_has_long_line, value))


def _count_unseen(planned: PlannedAction) -> int:
    """Return how many characters of what comes and goes are beyond what is shown of a line.

    A line that only moves within its field counts nothing: in another field it means something else.
    """
    lines: list[DiffLine] = all_lines(planned.before, planned.after)
    left = {at: max(len(line.text) - MAX_FULL, 0) for at, line in enumerate(lines) if line.kind in "+-"}
    came = [at for at in left if left[at] and lines[at].kind == "+"]
    for at in [at for at in left if left[at] and lines[at].kind == "-"]:
        moved = (lines[at].text, lines[at].path)
        twin = next((other for other in came if (lines[other].text, lines[other].path) == moved), None)
        if twin is not None:
            came.remove(twin)
            left[at] = left[twin] = 0
    for gone, come in replaced_lines(lines):
        if left[gone] or left[come]:
            left[gone], left[come] = in_pieces(lines[gone].text, lines[come].text).unseen, 0
    return sum(left.values())


def compare_chart_values(facts: Facts) -> Iterator[Finding]:
    """Find the values of a chart that changed: first those that the spec sets, then the chart's own.

    A chart may put any of them into a Secret, as it is or hashed. So everybody is told which ones changed, and only who
    may get the BundleDeployment and the Secrets of both contents what they were and are. Which Secret holds a value is
    never looked at: who tries values would learn which of them one holds (S38).
    """
    if facts.previous is None or facts.previous.values is None or facts.content.values is None:
        return
    before, after = facts.previous.values, facts.content.values
    # Of more than are kept nobody knows whether one came or went.
    is_cut = max(len(before), len(after)) >= MAX_VALUES
    known = before.keys() & after.keys() if is_cut else before.keys() | after.keys()
    # Contents that were rendered by earlier versions hold addresses as they were written.
    differing = [path for path in known if before.get(path) != after.get(path)]
    sides = {path: (_mask(before.get(path)), _mask(after.get(path))) for path in differing}
    found = sorted(path for path, (old, new) in sides.items() if not _is_same(old, new))
    if not found:
        return
    by_spec = facts.previous.spec_values | facts.content.spec_values
    changed = sorted(found, key=lambda path: not _is_under(path, by_spec))
    count = sum(_is_under(path, by_spec) for path in found)
    params: dict[str, Any] = {"count": len(changed), "by_spec": count if 0 < count < len(found) else None}
    values = [_describe_change(path, *sides[path]) for path in changed[:MAX_SHOWN_VALUES]]
    left_out = len(changed) - len(values)
    # Its name is made of paths alone: values could be guessed from it.
    finding = _VALUES_CHANGED.finding("changed", None, key=found, values=values, left_out=left_out, **params)
    if facts.bundle is not None:
        stated = _VALUES_CHANGED.finding("named", None, names=[visible(path) for path in changed], **params).message
        # Who can get all of these knows the values anyway.
        objects = (*facts.content.everything, *facts.previous.everything)
        secrets = sorted({manifest.ref for manifest in objects if manifest.ref.group_kind == SECRET})
        sources = (replace(_DEPLOYMENT, name=facts.deployment), *secrets)
        finding = replace(finding, evidence={**finding.evidence, STATED: stated}, sources=sources)
    yield finding


def _mask(value: str | None) -> str | None:
    return None if value is None else masked(value)


def _is_same(before: str | None, after: str | None) -> bool:
    """Of a long value earlier versions kept the beginning, and not how long it was: nobody knows whether it changed."""
    if before is None or after is None or before == after:
        return before == after
    shorter, longer = sorted((before, after), key=len)
    return shorter.endswith("…") and longer.startswith(shorter)


def _is_under(path: str, paths: frozenset[str]) -> bool:
    """Whether it is one of these paths or below one, as is all of a mapping that the spec replaces by one value."""
    return not paths.isdisjoint(accumulate(path.split("."), lambda above, step: f"{above}.{step}"))


def _describe_change(path: str, before: str | None, after: str | None) -> dict[str, Any]:
    """Return one value that changed, in the variant that says it; of two lists what came to it and went from it."""
    variant = "new" if before is None else "gone" if after is None else "changed"
    sides = {name: None if text is None else visible(text) for name, text in (("before", before), ("after", after))}
    described: dict[str, Any] = {VARIANT: variant, "path": visible(path), **sides}
    try:
        old, new = json.loads(before or ""), json.loads(after or "")
    except ValueError:  # no list, or cut off
        return described
    if isinstance(old, list) and isinstance(new, list) and old and new:
        gained, lost = _leave_out(new, old), _leave_out(old, new)
        variant = ("gains-and-loses" if lost else "gains") if gained else "loses" if lost else "reordered"
        described |= {VARIANT: variant, "gained": gained, "lost": lost}
    return described


def _leave_out(items: list[Any], others: list[Any]) -> list[str]:
    """Return the items that are not among the others, each as often as it is more often there."""
    left = list(others)
    found = []
    for item in items:
        if item in left:
            left.remove(item)
        else:
            found.append(visible(json.dumps(item, ensure_ascii=False, sort_keys=True)))
    return found


def compare_hooks(facts: Facts) -> Iterator[Finding]:
    """Find what the hooks of a chart do and when, which of them do not run now, and what they leave behind."""
    actions = {planned.ref.identity: planned for planned in facts.plan.actions}
    before = {manifest.ref.identity: manifest for manifest in (facts.previous.manifests if facts.previous else ())}
    for manifest in facts.content.manifests:
        if manifest.hook:
            old = before.get(manifest.ref.identity)
            is_new = old is None or (old.body, old.hook) != (manifest.body, manifest.hook)
            yield replace(_judge_hook(manifest, actions.get(manifest.ref.identity)), is_new=is_new)
    known = {(manifest.ref.identity, manifest.hook) for manifest in (facts.previous.hooks if facts.previous else ())}
    for manifest in facts.content.hooks:
        # This request does not run it.
        assert manifest.hook is not None
        going = [str(moment) for moment in manifest.hook.moments if moment in DELETING]
        variant = "at-deletion" if going else "going-back"
        found = _LATER.finding(variant, manifest.ref, moments=going or None)
        yield replace(found, is_new=(manifest.ref.identity, manifest.hook) not in known)
    if left := facts.left_by_hooks:
        yield _LEFT.finding("left", None, key=[said(ref) for ref in left], objects=left)


def _judge_hook(manifest: Manifest, planned: PlannedAction | None) -> Finding:
    assert manifest.hook is not None
    ref, hook, action = manifest.ref, manifest.hook, planned.action if planned else None
    if planned and action is Action.NONE:
        return _LATER.finding("not-again", ref, words=list(planned.notes))
    moments = [str(moment) for moment in hook.moments]
    params: dict[str, Any] = {"moments": moments, "weight": hook.weight, "cleared": hook.is_cleared}
    rule, variant = _RUNS_NOTHING, "creates"
    for pod in pod_specs((manifest.body,)):
        rule, variant = _RUNS, "runs"
        params["images"] = [visible(str(container.body.get("image") or "")) for container in pod.containers()]
        params["account"] = visible(pod.account)
    if action is Action.RERUN:
        params["run"] = "again"
    loses = ref.group_kind not in LOSES_NOTHING
    if hook.is_cleared:
        params["ends"] = "cleared"
        rule = replace(rule, severity=Severity.DANGEROUS) if loses else rule
    if planned and action is Action.REPLACE:
        params["replaces"] = "own" if planned.before is not None else "unknown"
        takes_along = loses and ref.group_kind in KINDS_WITH_CONSEQUENCE
        params["loses"] = ref.kind if takes_along else None
        rule = replace(rule, severity=Severity.BREAKING if takes_along else Severity.DANGEROUS)
    return rule.finding(variant, ref, key=[*moments, hook.weight], **params)


def compare_lookups(facts: Facts) -> Iterator[Finding]:
    """Find the objects of the cluster that a chart was told of, and where values of Secrets went."""
    before = facts.previous.lookups if facts.previous else ()
    for lookup in facts.content.lookups:
        copies = [visible(name) for name in lookup.copies]
        namespaces = {name.rpartition("/")[0] or facts.content.install_namespace for name in lookup.copies}
        rule, variant = _LOOKED_UP, "no-values"
        if not lookup.digest:
            variant = "absent"
        elif lookup.ref.kind != "Secret":
            variant = "told"
        elif namespaces - {lookup.ref.namespace}:
            rule, variant = _GOES_ELSEWHERE, "values-go-elsewhere"
        elif copies:
            variant = "values-go"
        key = [said(lookup.ref), lookup.digest, *copies]
        found = rule.finding(variant, None, key=key, object=lookup.ref, copies=copies)
        yield replace(found, is_new=lookup not in before)
        if lookup.compared:
            known = {place for earlier in before if earlier.ref == lookup.ref for place in earlier.compared}
            key, places = [said(lookup.ref), *lookup.compared], list(lookup.compared)
            found = _COMPARED.finding("compared", None, key=key, object=lookup.ref, places=places)
            yield replace(found, is_new=not known.issuperset(lookup.compared))


def compare_unused_files(facts: Facts) -> Iterator[Finding]:
    """Find files of the sources that the bundle's format did not use: nothing in them is applied."""
    unused = facts.content.unused
    if not unused.count:
        return
    rule, variant = (_READABLE_UNUSED, "objects-not-used") if unused.readable_count else (_OTHERS_UNUSED, "not-used")
    found = rule.finding(
        variant,
        None,
        key=[unused.count, *unused.paths],
        count=unused.count,
        yamlOrJson=unused.readable_count,
        others=(unused.count - unused.readable_count) or None,
        files=[visible(path) for path in unused.paths],
    )
    yield replace(found, is_new=facts.previous is None or facts.previous.unused != unused)


def compare_repeated_keys(facts: Facts) -> Iterator[Finding]:
    """Find keys that are there twice in the files of the bundle, by which value counts."""
    before = facts.previous.repeated if facts.previous else ()
    for effect, rule in _REPEATED.items():
        found = [one for one in facts.content.repeated if one.effect is effect]
        if found:
            keys = [visible(f"{one.path} ({one.file}, {one.places})") for one in found]
            is_new = any(one not in before for one in found)
            yield replace(rule.finding(str(effect), None, key=keys, keys=keys), is_new=is_new)


# When a hook runs and what becomes of it is what these findings say. Of an object that is no hook they say nothing.
_HOOK_CLAIM = Claim(
    "HOOK-01",
    EVERY_KIND,
    tuple(f"metadata.annotations.[helm.sh/{name}]" for name in ("hook", "hook-weight", "hook-delete-policy")),
    is_of_hooks=True,
)
CONTENT_CHECK = Check("content", standing=judge_content)
CHART_VALUES_CHECK = Check("values of the chart", changes=compare_chart_values)
HOOKS_CHECK = Check("hooks", changes=compare_hooks, claims=(_HOOK_CLAIM,))
LOOKUPS_CHECK = Check("lookups", changes=compare_lookups)
UNUSED_FILES_CHECK = Check("unused files", changes=compare_unused_files)
REPEATED_KEYS_CHECK = Check("repeated keys", changes=compare_repeated_keys)
UNSEEN_CHECK = Check("unseen changes", changes=compare_lines)
