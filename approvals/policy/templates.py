"""Policies to begin with: each fills the form, to be tried on past requests and saved as one's own. PURE."""

from __future__ import annotations

from dataclasses import dataclass

from approvals.policy.document import PolicyDocument, PolicyEffect, Validation

CRD = '"CustomResourceDefinition.apiextensions.k8s.io"'
HARMLESS = 'worst_new in ["safe", "notable"]'


@dataclass(frozen=True, slots=True)
class PolicyTemplate:
    """`words` say what it is for, in the list of templates."""

    words: str
    document: PolicyDocument


def _template(
    name: str, effect: PolicyEffect, words: str, expression: str, message: str = "", *, powers: bool = False
) -> PolicyTemplate:
    document = PolicyDocument(name, effect, (Validation(expression, message),), allows_known_powers=powers)
    return PolicyTemplate(words, document)


def _listed(*rules: str) -> str:
    return ", ".join(f'"{rule}"' for rule in rules)


_LOSSES = _listed("DEL-01", "DEL-02", "DEL-03", "CRD-08")
_SECRETS = _listed("RB-01", "RB-03", "RB-05", "RB-06", "RB-10", "RB-11", "RB-12", "RB-13")

TEMPLATES: tuple[PolicyTemplate, ...] = (
    _template(
        "hold-breaking-crds",
        PolicyEffect.GUARD,
        "Hold CRD changes that break stored objects",
        f'!({CRD} in kinds) || (new_severities["breaking"] == 0 && new_severities["critical"] == 0)',
        "a changed CRD breaks something: ask its users first",
    ),
    _template(
        "hold-data-loss",
        PolicyEffect.GUARD,
        "Hold deletions and what may lose data",
        f'actions["delete"] == 0 && actions["replace"] == 0 && !new_rules.exists(r, r in [{_LOSSES}])',
        "something is deleted: check that its data is backed up",
    ),
    _template(
        "hold-secrets-and-escalation",
        PolicyEffect.GUARD,
        "Hold new permissions on Secrets, or to gain more permissions",
        f"!new_rules.exists(r, r in [{_SECRETS}])",
        "an account could read Secrets or gain permissions: ask security",
    ),
    _template(
        "hold-unknown",
        PolicyEffect.GUARD,
        "Hold findings whose effect is unknown",
        'severities["unknown"] == 0',
        "the effect of a finding is unknown",
    ),
    _template(
        "hold-pratique",
        PolicyEffect.GUARD,
        "Hold content that affects Pratique itself",
        'new_rules.all(r, !r.startsWith("OWN-PRATIQUE"))',
        "this content affects Pratique itself",
    ),
    _template(
        "hold-admission",
        PolicyEffect.GUARD,
        "Hold changes of admission webhooks and policies",
        'kinds.all(k, !k.endsWith(".admissionregistration.k8s.io"))',
        "admission changes: ask the platform team",
    ),
    _template(
        "hold-unjudged",
        PolicyEffect.GUARD,
        "Hold fields that no rule judges",
        "unjudged == 0",
        "a field changes that no rule judges: read its lines",
    ),
    _template(
        "hold-other-registries",
        PolicyEffect.GUARD,
        "Hold sources that are not from your registry",
        'sources.all(s, s.startsWith("image:registry.example.com/"))',
        "only registry.example.com is allowed",
    ),
    _template(
        "approve-harmless",
        PolicyEffect.GRANT,
        "Approve updates in which nothing is worse than notable",
        f'!is_first && {HARMLESS} && unjudged == 0 && actions["delete"] == 0',
    ),
    _template(
        "approve-operator-upgrades",
        PolicyEffect.GRANT,
        "Approve upgrades of operators that get no new permissions",
        f'!is_first && {HARMLESS} && !("RB-DIFF" in new_rules) && actions["delete"] == 0',
        powers=True,
    ),
)


def find_template(name: str) -> PolicyTemplate | None:
    return next((template for template in TEMPLATES if template.document.name == name), None)
