"""The accounts that pods run as, the tokens that they get, the Secrets that they read, and configuration that is named
like a credential, is immutable, or changes while its readers stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from provisioner.json_values import mapping, maps, value_at
from provisioner.rbac import RbacSubject
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import SECRET, STATED, Check, Facts, FieldPath, Reads, ReviewRule, StateFacts
from provisioner.review.rights.accounts import AccountPowers, Gain, Makers, account_of
from provisioner.review.rights.permission_words import rules_record, words_of
from provisioner.review.rules import Phrase
from provisioner.review.workloads.mounts import MOUNTED_BY_SERVER
from provisioner.review.workloads.pod_specs import Mention, PodSpec, mentions, pod_specs
from provisioner.review.workloads.workload_changes import STAYING, of_containers, pod_changes
from provisioner.values import Action, Finding, GroupKind, ObjectRef, Section, Severity

_READS_FOREIGN = ReviewRule("POD-30", Section.PODS, Severity.DANGEROUS)
_READS_PERHAPS_OWN = ReviewRule("POD-30", Section.PODS, Severity.NOTABLE)
_MOVED = ReviewRule("POD-32", Section.PODS, Severity.NOTABLE)
_GAINING = ReviewRule("POD-32", Section.PODS, Severity.DANGEROUS)
_GAINING_CRITICAL = ReviewRule("POD-32", Section.PODS, Severity.CRITICAL)
_GAIN_UNKNOWN = ReviewRule("POD-32", Section.PODS, Severity.UNKNOWN)
_TOKEN = ReviewRule("POD-33", Section.PODS, Severity.NOTABLE)
_STRONG_TOKEN = ReviewRule("POD-33", Section.PODS, Severity.DANGEROUS)
_NAMED_SO = ReviewRule("SEC-02", Section.CONTENT, Severity.DANGEROUS)
_IMMUTABLE = ReviewRule("SEC-03", Section.OBJECTS, Severity.BREAKING)
_NOT_ROLLED = ReviewRule("SEC-05", Section.PODS, Severity.DANGEROUS)
_NEVER_EXPIRES = ReviewRule("SEC-06", Section.CONTENT, Severity.NOTABLE)
_JOINS = ReviewRule("SEC-06", Section.CONTENT, Severity.DANGEROUS)

_ACCOUNT, _CONFIG_MAP = GroupKind("", "ServiceAccount"), GroupKind("", "ConfigMap")
_CONFIGURATION = frozenset({_CONFIG_MAP, SECRET})
_AUTOMOUNT = "automountServiceAccountToken"
# The usual lifetime of a token that a pod asks for.
_USUAL_SECONDS = 3600
_CREDENTIAL = re.compile(
    r"(^|[_.-])(pass(word|wd|phrase)?|pwd|secret([_-]?key)?|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)$",
    re.IGNORECASE,
)
# Values that name where a credential is, or that there is none, are none themselves.
_HARMLESS = re.compile(
    r"|true|false|yes|no|on|off|none|null|\d{1,4}|/[\w./-]+|\$[({].*|.*\.(pem|crt|key|json|yaml|txt)", re.IGNORECASE
)


def compare_accounts(facts: Facts) -> Iterator[Finding]:
    """Find pods that run as another account than before, or as a strong one that the bundle neither brings nor used."""
    place = facts.content.install_namespace
    moved = []
    for change in pod_changes(facts.plan):
        old, new = account_of(change.before, place), account_of(change.after, place)
        if old != new:
            moved.append((change.after, old, new))
    created = {planned.ref.identity for planned in facts.plan.actions if planned.action is Action.CREATE}
    used = {account_of(pod, place) for pod in pod_specs(facts.previous_state().objects)}
    used |= _find_automounts(facts.state()).keys()
    pods = [pod for pod in pod_specs(facts.state().objects) if pod.ref.identity in created]
    strange = [pod for pod in pods if account_of(pod, place) not in used]
    if not (moved or strange):
        return
    powers = AccountPowers.of(facts)
    for pod, old, new in moved:
        gain = powers.gained(old, new)
        rule, variant = _MOVED, "may-do-more" if gain.added else "may-do-no-more"
        if gain.risks:
            rule, variant = _weigh_risks(gain), "gains"
        elif gain.unknown:
            rule, variant = _GAIN_UNKNOWN, "unknown"
        params: dict[str, Any] = {"before": str(old), "after": str(new), "account": new.name, "old_account": old.name}
        stated = {STATED: Phrase.of(_MOVED.id, "stated.moved", subject=pod.ref, **params)}
        where, key = (*pod.path, "serviceAccountName"), [str(old), str(new), gain.sense]
        yield rule.finding(variant, pod.ref, where=where, key=key, **params, **stated, **_describe_gain(gain))
    for pod in strange:
        account = account_of(pod, place)
        # What is not known here is said where the account is looked for (SEC-04) or roles could not be read.
        gain = powers.gained(None, account)
        if gain.risks:
            params = {"after": str(account), "account": account.name}
            stated = {STATED: Phrase.of(_MOVED.id, "stated.new", subject=pod.ref, **params)}
            params |= {**stated, **_describe_gain(gain)}
            where, key = (*pod.path, "serviceAccountName"), [str(account), gain.sense]
            yield _weigh_risks(gain).finding("new-with-powers", pod.ref, where=where, key=key, **params)


def _weigh_risks(gain: Gain) -> ReviewRule:
    """As bad as what is gained: to run as an account is to have its rights."""
    return _GAINING_CRITICAL if any(risk.severity is Severity.CRITICAL for risk in gain.risks) else _GAINING


def _describe_gain(gain: Gain) -> dict[str, Any]:
    params = {"powers": gain.powers, "added": rules_record(gain.added), "rights": words_of(gain.added) or None}
    return {**params, "unknown": list(gain.unknown) or None}


def _find_automounts(state: StateFacts) -> dict[RbacSubject, Any]:
    """Return the accounts of the bundle, each with what it says of tokens for its pods."""
    own = ((ref, obj) for ref, obj in state.named if ref.group_kind == _ACCOUNT)
    place = state.install_namespace
    return {RbacSubject("ServiceAccount", ref.name, ref.namespace or place): obj.get(_AUTOMOUNT) for ref, obj in own}


def compare_tokens(facts: Facts) -> Iterator[Finding]:
    """Find pods that get the token of their account and did not before; what the pod leaves open, the account says.

    Where only the account says something else, that is told of the account.
    """
    before, after = facts.previous_state(), facts.state()
    mounting = [
        change.after
        for change in pod_changes(facts.plan)
        if change.after.body.get(_AUTOMOUNT) != change.before.body.get(_AUTOMOUNT)
        and not _gets_token(change.before, before)
        and _gets_token(change.after, after)
    ]
    powers = AccountPowers.of(facts) if mounting else None
    for pod in mounting:
        assert powers is not None
        account = account_of(pod, facts.content.install_namespace)
        gain = powers.gained(None, account)
        rule, key = _STRONG_TOKEN if gain.risks else _TOKEN, [str(account), gain.sense]
        params = {"after": str(account), "account": account.name, "powers": gain.powers}
        yield rule.finding("mounts", pod.ref, where=(*pod.path, _AUTOMOUNT), key=key, **params)
    for planned in facts.plan.actions:
        old, new = mapping(planned.before), mapping(planned.after)
        is_open = old.get(_AUTOMOUNT) is False and new.get(_AUTOMOUNT) is not False
        if planned.ref.group_kind == _ACCOUNT and planned.action in STAYING and new and is_open:
            yield _TOKEN.finding("given-by-account", planned.ref, where=(_AUTOMOUNT,), key="account")


def _gets_token(pod: PodSpec, state: StateFacts) -> bool:
    stated = pod.body.get(_AUTOMOUNT)
    if isinstance(stated, bool):
        return stated
    return _find_automounts(state).get(account_of(pod, state.install_namespace)) is not False


def judge_tokens(state: StateFacts) -> Iterator[Finding]:
    """Find tokens that pods ask for themselves: for whom, and for how long."""
    for pod in pod_specs(state.objects):
        asked: set[tuple[str, int]] = set()
        for volume in maps(pod.body.get("volumes")):
            if str(volume.get("name")).startswith(MOUNTED_BY_SERVER):
                continue
            for source in maps(value_at(volume, "projected", "sources")):
                if source.get("serviceAccountToken") is not None:
                    token = mapping(source["serviceAccountToken"])
                    seconds = token.get("expirationSeconds")
                    # 0 is the usual lifetime or a shorter one.
                    lifetime = seconds if isinstance(seconds, int) and seconds > _USUAL_SECONDS else 0
                    asked.add((str(token.get("audience") or ""), lifetime))
        if found := sorted(asked):
            account = account_of(pod, state.install_namespace)
            tokens = []
            for audience, seconds in found:
                hours, rest = divmod(seconds, 3600)
                shown = {"seconds": seconds} if rest else {"hours": hours} if hours else {}
                tokens.append({"audience": audience, **shown})
            where, key = (*pod.path, "volumes"), [str(account), found]
            yield _TOKEN.finding("asks", pod.ref, where=where, key=key, account=account.name, tokens=tokens)


def compare_read_secrets(facts: Facts) -> Iterator[Finding]:
    """Find Secrets that pods did not read before and that the bundle neither brings nor makes: those of somebody else.

    In a first request nothing was read before, and people may have made what its pods need.
    """
    makers = Makers(facts)
    own = {manifest.ref.identity for manifest in facts.content.manifests}
    own |= {mention.ref.identity for pod in pod_specs(facts.previous_state().objects) for mention in _find_read(pod)}
    created = {planned.ref.identity for planned in facts.plan.actions if planned.action is Action.CREATE}
    reading = [(change.after, _find_read(change.before)) for change in pod_changes(facts.plan)]
    reading += [(pod, []) for pod in pod_specs(facts.state().objects) if pod.ref.identity in created]
    for pod, read_before in reading:
        known = own | {mention.ref.identity for mention in read_before}
        made: list[str] = []
        foreign: list[str] = []
        for mention in _find_read(pod):
            if mention.ref.identity in known or makers.with_result(mention.ref):
                continue
            # Pods of the bundle may make it; what is in the cluster already nobody makes.
            may_be_made = not facts.around.exists.get(mention.ref.identity) and bool(makers.able(mention))
            (made if may_be_made else foreign).append(mention.ref.name)
        made, foreign = sorted(made), sorted(name for name in foreign if name not in made)
        if variant := "-and-".join([*(["foreign"] if foreign else []), *(["perhaps-made"] if made else [])]):
            rule = _READS_FOREIGN if foreign and facts.previous is not None else _READS_PERHAPS_OWN
            both = sorted({*foreign, *made})
            yield rule.finding(variant, pod.ref, key=[foreign, made], secrets=both, foreign=foreign, made=made)


def _find_read(pod: PodSpec) -> list[Mention]:
    """Return the Secrets that the containers of a pod see, each once."""
    found = (mention for mention in mentions(pod) if mention.is_read and mention.ref.group_kind == SECRET)
    return list({mention.ref.identity: mention for mention in found}.values())


def mention_read_secrets(facts: Facts) -> Iterator[ObjectRef]:
    """Whether a Secret that the bundle does not bring is in the cluster already says whose it is."""
    brought = {manifest.ref.identity for manifest in facts.content.manifests}
    for pod in pod_specs(tuple(manifest.body for manifest in facts.content.manifests)):
        refs = (mention.ref for mention in _find_read(pod) if pod.ref.namespace)
        yield from (ref for ref in refs if ref.identity not in brought)


def judge_configuration(state: StateFacts) -> Iterator[Finding]:
    """Find configuration that is named like a credential, and Secrets that are tokens."""
    for ref, obj in state.named:
        if ref.group_kind == _CONFIG_MAP:
            yield from _find_credentials(ref, mapping(obj.get("data")), ("data",))
        elif ref.group_kind == SECRET and obj.get("type") == "bootstrap.kubernetes.io/token":
            yield _JOINS.finding("bootstrap", ref, where=("type",))
        elif ref.group_kind == SECRET and obj.get("type") == "kubernetes.io/service-account-token":
            annotations = mapping(value_at(obj, "metadata", "annotations"))
            account = str(annotations.get("kubernetes.io/service-account.name"))
            yield _NEVER_EXPIRES.finding("never-expires", ref, key=account, account=account)
    for pod in pod_specs(state.objects):
        for container in pod.containers():
            literal = {str(entry.get("name")): entry.get("value") for entry in maps(container.body.get("env"))}
            yield from _find_credentials(pod.ref, literal, (*container.path, "env"))


def _find_credentials(ref: ObjectRef, values: Mapping[str, Any], path: FieldPath) -> Iterator[Finding]:
    """Find keys that are named like credentials and have a value that could be one. The value is never shown."""
    for name, value in sorted(((str(key), value) for key, value in values.items()), key=itemgetter(0)):
        if isinstance(value, str) and _CREDENTIAL.search(name) and not _HARMLESS.fullmatch(value.strip()):
            yield _NAMED_SO.finding("plain-text", ref, where=(*path, name), key=name, name=name)


def compare_configuration(facts: Facts) -> Iterator[Finding]:
    """Find configuration that is immutable and changes, or that changes while the pods that read it stay."""
    touched = set()
    for planned in facts.plan.actions:
        if planned.ref.group_kind not in _CONFIGURATION:
            continue
        old, new = planned.before or {}, planned.after or {}
        parts = ("data", "binaryData", "stringData", "immutable")
        differs = any(old.get(part) != new.get(part) for part in parts)
        if planned.action in {Action.UPDATE, Action.REPLACE} and old.get("immutable") is True and differs:
            yield _IMMUTABLE.finding("immutable", planned.ref, where=("immutable",))
        if planned.action is Action.UPDATE and (planned.before is None or planned.before != planned.after):
            touched.add(planned.ref)
    # The pods go on with what they read at their start.
    before = {planned.ref.identity: planned.before for planned in facts.plan.actions}
    for pod in pod_specs(facts.state().objects):
        read = sorted({mention.ref for mention in mentions(pod) if mention.ref in touched and mention.is_read})
        body = before.get(pod.ref.identity)
        former = next(pod_specs((body,)), None) if read and body is not None else None
        if former is not None and _dump_template(former) == _dump_template(pod):
            yield _NOT_ROLLED.finding("pods-stay", pod.ref, key=str(read), reads=read)


def _dump_template(pod: PodSpec) -> str:
    return json.dumps([dict(pod.body), dict(pod.annotations)], sort_keys=True, default=str)


_ACCOUNT_CLAIMS = (Claim("POD-32", PODS, ("{pod}.serviceAccountName", "{pod}.serviceAccount")),)
_READ_CLAIMS = (
    Claim("POD-30", PODS, ("{pod}.volumes.*.secret", "{pod}.volumes.*.projected.sources.*.secret")),
    of_containers("POD-30", "env.*.valueFrom.secretKeyRef", "envFrom.*.secretRef"),
)
_TOKEN_CLAIMS = (
    Claim("POD-33", PODS, (f"{{pod}}.{_AUTOMOUNT}", "{pod}.volumes.*.projected.sources.*.serviceAccountToken")),
    Claim("POD-33", frozenset({_ACCOUNT}), (_AUTOMOUNT,), is_of_new=True),
)
_READS = frozenset({Reads.ROLES})
ACCOUNTS_CHECK = Check("accounts", changes=compare_accounts, claims=_ACCOUNT_CLAIMS, reads=_READS)
TOKENS_CHECK = Check("tokens", changes=compare_tokens, standing=judge_tokens, claims=_TOKEN_CLAIMS, reads=_READS)
READ_SECRETS_CHECK = Check(
    "reading", changes=compare_read_secrets, mentions=mention_read_secrets, claims=_READ_CLAIMS, reads=_READS
)
CONFIGURATION_CHECK = Check(
    "settings",
    claims=(Claim("SEC-06", frozenset({SECRET}), ("type",), is_of_new=True),),
    changes=compare_configuration,
    standing=judge_configuration,
)
