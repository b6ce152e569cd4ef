"""Tokens of accounts that pods get: the usual one where they had none, and those that they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.rbac import RbacSubject
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, Reads, ReviewRule, StateFacts, mapping, maps
from provisioner.review.rights.accounts import AccountPowers, account_of
from provisioner.review.workloads.mounts import MOUNTED_BY_SERVER
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import STAYING, PodChange, pod_changes
from provisioner.values import Finding, GroupKind, Section, Severity

_TOKEN = ReviewRule("POD-33", Section.PODS, Severity.NOTABLE)
_STRONG = ReviewRule("POD-33", Section.PODS, Severity.DANGEROUS)

_ACCOUNT = GroupKind("", "ServiceAccount")
_AUTOMOUNT = "automountServiceAccountToken"
# The usual lifetime of a token that a pod asks for.
_USUAL_SECONDS = 3600


def _changes(facts: Facts) -> Iterator[Finding]:
    mounting = [one for one in pod_changes(facts.plan) if _mounts_newly(one, facts)]
    powers = AccountPowers.of(facts) if mounting else None
    for one in mounting:
        assert powers is not None
        yield _of_token(one.after, account_of(one.after, facts.content.install_namespace), powers)
    for planned in facts.plan.actions:
        before, after = mapping(planned.before), mapping(planned.after)
        is_open = before.get(_AUTOMOUNT) is False and after.get(_AUTOMOUNT) is not False
        if planned.ref.group_kind == _ACCOUNT and planned.action in STAYING and after and is_open:
            yield _TOKEN.finding("given-by-account", planned.ref, where=(_AUTOMOUNT,), key="account")


def _mounts_newly(change: PodChange, facts: Facts) -> bool:
    """Whether pods get the token of their account and did not before; what the pod leaves open, the account says.

    Where only the account says something else, that is told of the account.
    """
    if change.after.body.get(_AUTOMOUNT) == change.before.body.get(_AUTOMOUNT):
        return False
    before, after = facts.previous_state(), facts.state()
    return not _gets_token(change.before, before) and _gets_token(change.after, after)


def _gets_token(pod: PodSpec, state: StateFacts) -> bool:
    said_by_pod = pod.body.get(_AUTOMOUNT)
    if isinstance(said_by_pod, bool):
        return said_by_pod
    account = account_of(pod, state.install_namespace)
    return _said_by_accounts(state).get(account) is not False


def _said_by_accounts(state: StateFacts) -> dict[RbacSubject, Any]:
    own = ((ref, obj) for ref, obj in state.named if ref.group_kind == _ACCOUNT)
    place = state.install_namespace
    return {RbacSubject("ServiceAccount", ref.name, ref.namespace or place): obj.get(_AUTOMOUNT) for ref, obj in own}


def _of_token(pod: PodSpec, account: RbacSubject, powers: AccountPowers) -> Finding:
    gain = powers.gained(None, account)
    rule, key = _STRONG if gain.risks else _TOKEN, [str(account), gain.sense]
    params = {"after": str(account), "account": account.name, "powers": gain.powers}
    return rule.finding("mounts", pod.ref, where=(*pod.path, _AUTOMOUNT), key=key, **params)


def _standing(state: StateFacts) -> Iterator[Finding]:
    """Tokens that pods ask for by themselves: for whom, and for how long."""
    for pod in pod_specs(state.objects):
        found = sorted({(str(one.get("audience") or ""), _lifetime(one)) for one in _asked(pod)})
        if found:
            account = account_of(pod, state.install_namespace)
            tokens = [{"audience": audience, **_in_units(seconds)} for audience, seconds in found]
            where, key = (*pod.path, "volumes"), [str(account), found]
            yield _TOKEN.finding("asks", pod.ref, where=where, key=key, account=account.name, tokens=tokens)


def _asked(pod: PodSpec) -> Iterator[Mapping[str, Any]]:
    for volume in maps(pod.body.get("volumes")):
        if not str(volume.get("name")).startswith(MOUNTED_BY_SERVER):
            for source in maps(mapping(volume.get("projected")).get("sources")):
                if source.get("serviceAccountToken") is not None:
                    yield mapping(source["serviceAccountToken"])


def _lifetime(token: Mapping[str, Any]) -> int:
    """In seconds; 0 where it is the usual one or shorter."""
    seconds = token.get("expirationSeconds")
    return seconds if isinstance(seconds, int) and seconds > _USUAL_SECONDS else 0


def _in_units(seconds: int) -> dict[str, int]:
    hours, rest = divmod(seconds, 3600)
    return {"seconds": seconds} if rest else {"hours": hours} if hours else {}


_CLAIMS = (
    Claim("POD-33", PODS, (f"{{pod}}.{_AUTOMOUNT}", "{pod}.volumes.*.projected.sources.*.serviceAccountToken")),
    Claim("POD-33", frozenset({_ACCOUNT}), (_AUTOMOUNT,), is_of_new=True),
)
CHECK = Check("tokens", changes=_changes, standing=_standing, claims=_CLAIMS, reads=frozenset({Reads.ROLES}))
