"""CEL over documented facts. An error, a missing fact or anything but true is not true (promise 4). PURE.

What is asked is said here, and what an answer means. The evaluator (provisioner.expressions) is asked in between, by
steps and services.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner import expressions
from provisioner.expressions import ExpressionOutcome, Language, compiler_words, problem_words
from provisioner.sentences import some

MAX_EXPRESSION = 4000
MAX_WORDS = 1000


class BadExpression(Exception):
    """The expression does not compile, is not a yes-or-no question, or is too long; the message says where and why."""


class NotAsked(BadExpression):
    """Nobody knows whether it compiles, because no evaluator was free. Another time it may."""


class OverLimit(BadExpression):
    """It passes a limit of the evaluator by itself; to ask it again gives the same answer."""


@dataclass(frozen=True, slots=True)
class ExpressionVariable:
    """`type` as a Language of provisioner.expressions writes it."""

    type: str
    meaning: str


_COUNTS = "map<string,int>"
_NAMES = "list<string>"

# Everything that an expression may ask. What a bundle says of itself (version, labels of its objects) is not among
# them: it is a claim, and cannot satisfy a grant (security-rules.md S13).
FACTS: dict[str, ExpressionVariable] = {
    "worst": ExpressionVariable(
        "string", "severity of the worst finding: critical, breaking, unknown, dangerous, notable, safe"
    ),
    "worst_new": ExpressionVariable(
        "string", "the same, for new findings only (those that the running revision does not have)"
    ),
    "severities": ExpressionVariable(_COUNTS, "number of findings per severity; every severity has an entry"),
    "new_severities": ExpressionVariable(_COUNTS, "number of new findings per severity"),
    "worst_new_proved": ExpressionVariable(
        "string", "severity of the worst new finding that does not depend on stored objects which nobody looked at"
    ),
    "depends_on_objects": ExpressionVariable(
        _COUNTS, "number of findings per severity that only hold if a stored object is as they say, not yet looked at"
    ),
    "new_depends_on_objects": ExpressionVariable(_COUNTS, "the same, for new findings only"),
    "rules": ExpressionVariable(_NAMES, "rule ids of all findings, sorted, each once"),
    "new_rules": ExpressionVariable(_NAMES, "rule ids of the new findings"),
    "unjudged": ExpressionVariable(
        "int", "number of fields that are set, changed or removed and that no rule judges, counted for each object"
    ),
    "unjudged_paths": ExpressionVariable(
        _NAMES, "these fields as Kind.group:path, such as Service:spec.ports[].appProtocol, sorted, each once"
    ),
    "written_secrets": ExpressionVariable(
        "int", "number of Secrets that exist and are written, each a notable finding SEC-07 whether it changes or not"
    ),
    "waived": ExpressionVariable(
        "int",
        "number of findings accepted by reviewers who may `override`, or by finding exceptions; the other facts of a "
        "guard leave these out. Grants see every finding, and 0 here",
    ),
    "waived_severities": ExpressionVariable(
        _COUNTS, "the same per severity; a guard that must not be overridden requires 0 here"
    ),
    "waived_rules": ExpressionVariable(_NAMES, "rule ids of the accepted findings"),
    "approvals": ExpressionVariable("int", "number of people whose approval of this round counts"),
    "actions": ExpressionVariable(
        _COUNTS, "planned objects per action: create, update, replace, rerun, adopt, delete, orphan, skip, none"
    ),
    "kinds": ExpressionVariable(_NAMES, "kinds to be created, changed or deleted, as Kind.group"),
    "namespaces": ExpressionVariable(_NAMES, "namespaces of the planned objects"),
    "purpose": ExpressionVariable("string", "deploy, delete, rollback or rotate"),
    "name": ExpressionVariable("string", "name of the BundleDeployment"),
    "labels": ExpressionVariable("map<string,string>", "labels of the BundleDeployment"),
    "cluster": ExpressionVariable("string", "name of the cluster"),
    "is_first": ExpressionVariable("bool", "whether this is the first installation"),
    "requester_known": ExpressionVariable("bool", "whether everyone who changed the spec is known"),
    "requesters": ExpressionVariable(_NAMES, "user names of the requesters"),
    "change_reason": ExpressionVariable("string", "reason of the change, from the requester; empty for none"),
    "change_ticket": ExpressionVariable(
        "string", "ticket of the change, from the requester, such as CHG0001234; empty for none"
    ),
    "sources": ExpressionVariable(_NAMES, "pinned sources, as kind:reference"),
}

# What a constraint of a BundleDeployment may ask: the cluster as it is, not the content.
SURROUNDINGS: dict[str, ExpressionVariable] = {
    "kubernetes_version": ExpressionVariable("string", "version of the API server, such as v1.36.3"),
    "apis": ExpressionVariable(_NAMES, "served kinds, as group/version/Kind, or v1/Kind in the core group"),
    "versions": ExpressionVariable(
        "map<string,string>", "running version of each other BundleDeployment on the cluster, by name"
    ),
    "healthy": ExpressionVariable(_NAMES, "names of those whose objects are all ready"),
}
POLICY = Language.of({name: fact.type for name, fact in FACTS.items()})
# What a messageExpression may ask. Everybody who may read the request reads its text, so that it gets nothing of the
# report, of which readers may see different parts (security-rules.md S47).
MESSAGE_FACTS = frozenset(
    {"name", "labels", "cluster", "purpose", "is_first", "requester_known", "requesters", "change_reason"}
    | {"change_ticket"}
)
MESSAGE = Language.of({name: fact.type for name, fact in FACTS.items() if name in MESSAGE_FACTS})
MAX_MESSAGE = 1000
CONSTRAINT = Language.of({name: fact.type for name, fact in SURROUNDINGS.items()})

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExpressionResult:
    """`is_true` only where the expression evaluated to the boolean true."""

    is_true: bool
    is_error: bool
    words: str


def check_form(text: str) -> None:
    """Raise BadExpression for a text that is not worth asking the evaluator about."""
    if not text.strip():
        raise BadExpression("the expression is empty")
    if len(text) > MAX_EXPRESSION:
        raise BadExpression(f"the expression has {len(text)} characters; at most {MAX_EXPRESSION} are allowed")


def check_compiled(found: expressions.ExpressionAnswer, expected: str = "bool") -> None:
    """Raise BadExpression unless the evaluator compiled it, and it gives what is expected."""
    if found.exceeds:
        raise OverLimit(_cut(found.words, MAX_WORDS))
    if found.outcome is ExpressionOutcome.ENDED:
        raise NotAsked(_cut(found.words, MAX_WORDS))
    if found.outcome is not ExpressionOutcome.COMPILED:
        raise BadExpression(compiler_words(found.words))
    if found.type != expected:
        raise BadExpression(f"the expression gives {found.type}; expected {expected}")


def answer(text: str, facts: Facts, language: Language, found: expressions.ExpressionAnswer) -> ExpressionResult:
    """What the evaluator's answer means: what it could not evaluate on all facts is an error in words, and not true."""
    missing = sorted(name for name, _ in language.variables if name not in facts)
    if missing:
        return ExpressionResult(False, True, f"missing facts: {', '.join(missing)}")
    try:
        check_form(text)
    except BadExpression as exc:
        return ExpressionResult(False, True, f"does not compile: {exc}")
    if found.outcome is ExpressionOutcome.NOT_COMPILED:
        return ExpressionResult(False, True, f"does not compile: {compiler_words(found.words)}")
    if not found.is_bool:
        why = problem_words(text, found) or f"it gives {found.type}; expected bool"
        more = ". Evaluating it again will not help: change the expression" if found.exceeds else ""
        return ExpressionResult(False, True, f"could not be evaluated: {why}{more}")
    return ExpressionResult(found.is_true, False, f"`{text.strip()}` is {'true' if found.is_true else 'false'}")


def message_of(found: expressions.ExpressionAnswer) -> str:
    """The text that a messageExpression gave; "" where it gave none of one line: as ValidatingAdmissionPolicy does."""
    text = found.value.strip() if isinstance(found.value, str) else ""
    return text if len(text) <= MAX_MESSAGE and text.isprintable() else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def why_not_selected(*, names: Iterable[str], labels: Mapping[str, str], name: str, has: Mapping[str, str]) -> str:
    """Which part of a selector (name globs, labels; both empty: everything) a deployment does not match; "" where none.

    Only the selector's own words, not what labels the deployment has.
    """
    globs = list(names)
    if globs and not any(fnmatch.fnmatchcase(name, glob) for glob in globs):
        return f"the name {name} matches none of {some(globs)}"
    missing = [f"{key}={value}" for key, value in sorted(labels.items()) if has.get(key) != value]
    return f"it does not have the label{'s' if len(missing) > 1 else ''} {some(missing)}" if missing else ""
