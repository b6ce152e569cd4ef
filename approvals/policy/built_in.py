"""Guards that come with the product and hold requests from the start, until somebody switches one off. PURE.

What each holds can be let go: whoever may `override` accepts the findings, so these guards ask for findings and not for
actions, which nobody can accept. Nobody accepts an unknown finding either (decision 0015): for these it takes a second
person who approves (decision 0096).
"""

from __future__ import annotations

from dataclasses import dataclass

from approvals.policy.document import PolicyDocument, PolicyEffect, Validation

UID_PREFIX = "built-in:"
_GRAVE = 'new_severities["critical"] + new_severities["breaking"] + new_severities["dangerous"] > 0'
_ACCEPT = "a person who may `override` can accept the findings on the tab Findings of the request"


@dataclass(frozen=True, slots=True)
class BuiltInGuard:
    """`words` say what it holds."""

    words: str
    document: PolicyDocument

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def uid(self) -> str:
        """Of the row that stands for it on a cluster."""
        return f"{UID_PREFIX}{self.name}"


def _guard(name: str, words: str, expression: str, message: str) -> BuiltInGuard:
    validation = Validation(expression, message)
    return BuiltInGuard(words, PolicyDocument(name, PolicyEffect.GUARD, (validation,), is_enforced=True))


BUILT_IN: tuple[BuiltInGuard, ...] = (
    _guard(
        "hold-breaking-crds",
        "CRD changes that break stored objects",
        '!("CustomResourceDefinition.apiextensions.k8s.io" in kinds)'
        ' || (new_severities["critical"] == 0 && new_severities["breaking"] == 0)',
        f"a changed CRD breaks something. Ask its users first; {_ACCEPT}",
    ),
    _guard(
        "hold-data-loss",
        "loss of data",
        '!new_rules.exists(rule, rule in ["DEL-02", "CRD-08"])'
        f' && !(new_rules.exists(rule, rule in ["DEL-01", "DEL-03"]) && {_GRAVE})',
        f"data may be lost. Check that it is backed up; {_ACCEPT}",
    ),
    _guard(
        "hold-secrets-and-escalation",
        "new permissions on all Secrets, or to gain more permissions",
        '!(new_rules.exists(rule, rule in ["RB-01", "RB-03", "RB-05", "RB-06", "RB-10", "RB-11", "RB-12", "RB-13"])'
        f" && {_GRAVE})",
        f"an account could read Secrets or gain permissions. Ask security; {_ACCEPT}",
    ),
    _guard(
        "hold-unknown",
        "findings whose effect is unknown",
        'severities["unknown"] == 0 || approvals >= 2',
        "the effect of a finding is unknown, so two people must approve",
    ),
)
