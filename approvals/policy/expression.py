"""CEL over documented facts. An error, a missing fact or anything but true is not true (promise 4)."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cel_expr_python import cel

MAX_EXPRESSION = 4000


class BadExpression(Exception):
    """The expression does not compile, is not a yes-or-no question, or is too long; the message is CEL's own."""


@dataclass(frozen=True, slots=True)
class Fact:
    type: cel.Type
    meaning: str


_COUNTS = cel.Type.Map(cel.Type.STRING, cel.Type.INT)
_NAMES = cel.Type.List(cel.Type.STRING)

# Everything that an expression may ask. What a bundle says of itself (version, labels of its objects) is not among
# them: it is a claim, and cannot satisfy a grant (security.md S13).
FACTS: dict[str, Fact] = {
    "worst": Fact(
        cel.Type.STRING, "severity of the worst finding: critical, breaking, unknown, dangerous, notable, safe"
    ),
    "worst_new": Fact(cel.Type.STRING, "the same over findings that the running revision does not have"),
    "severities": Fact(_COUNTS, "findings per severity; every severity is there"),
    "new_severities": Fact(_COUNTS, "new findings per severity"),
    "rules": Fact(_NAMES, "rule ids of all findings, sorted, each once"),
    "new_rules": Fact(_NAMES, "rule ids of the new findings"),
    "waived": Fact(
        cel.Type.INT,
        "findings that reviewers who may `override` accepted: a guard's other facts are without them. For a grant"
        " nothing is waived: it sees every finding",
    ),
    "waived_severities": Fact(_COUNTS, "the same per severity; a guard that is not to be waived asks for 0 here"),
    "waived_rules": Fact(_NAMES, "rule ids of those findings"),
    "actions": Fact(_COUNTS, "planned objects per action: create, update, replace, adopt, delete, none"),
    "kinds": Fact(_NAMES, "kinds that are created, changed or deleted, as Kind.group"),
    "namespaces": Fact(_NAMES, "namespaces of those objects"),
    "purpose": Fact(cel.Type.STRING, "deploy, delete or rollback"),
    "name": Fact(cel.Type.STRING, "name of the BundleDeployment"),
    "labels": Fact(cel.Type.Map(cel.Type.STRING, cel.Type.STRING), "labels of the BundleDeployment"),
    "cluster": Fact(cel.Type.STRING, "name of the cluster"),
    "is_first": Fact(cel.Type.BOOL, "whether nothing of this deployment runs yet"),
    "requester_known": Fact(cel.Type.BOOL, "whether everybody who wrote the spec is known"),
    "requesters": Fact(_NAMES, "user names of those who asked"),
    "sources": Fact(_NAMES, "pinned sources, as kind:reference"),
}

# What a constraint of a BundleDeployment may ask: the cluster as it is, not the content.
SURROUNDINGS: dict[str, Fact] = {
    "kubernetes_version": Fact(cel.Type.STRING, "of the API server, such as v1.36.3"),
    "apis": Fact(_NAMES, "the kinds that are served, as group/version/Kind, v1/Kind in the core group"),
    "versions": Fact(
        cel.Type.Map(cel.Type.STRING, cel.Type.STRING),
        "what runs of each other BundleDeployment here, by name",
    ),
    "healthy": Fact(_NAMES, "the names of those whose objects are all ready"),
}
VOCABULARIES = {"policy": FACTS, "constraint": SURROUNDINGS}

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """`is_true` only where the expression evaluated to the boolean true."""

    is_true: bool
    is_error: bool
    words: str


@functools.cache
def _environment(vocabulary: str) -> Any:
    return cel.NewEnv(variables={name: fact.type for name, fact in VOCABULARIES[vocabulary].items()})


@functools.lru_cache(maxsize=256)
def compile_expression(text: str, vocabulary: str = "policy") -> Any:
    """The type-checked expression over the facts of one of VOCABULARIES; raises BadExpression."""
    if not text.strip():
        raise BadExpression("the expression is empty")
    if len(text) > MAX_EXPRESSION:
        raise BadExpression(f"the expression has {len(text)} characters; at most {MAX_EXPRESSION} are allowed")
    try:
        compiled = _environment(vocabulary).compile(text)
    except (RuntimeError, ValueError, TypeError) as exc:
        raise BadExpression(str(exc)) from exc
    if compiled.return_type() != cel.Type.BOOL:
        raise BadExpression(f"the expression gives {compiled.return_type().name()}; expected bool")
    return compiled


def evaluate(text: str, facts: Facts, vocabulary: str = "policy") -> Answer:
    """Never raises: what cannot be evaluated is an error in words, and not true."""
    missing = sorted(VOCABULARIES[vocabulary].keys() - facts.keys())
    if missing:
        return Answer(False, True, f"facts are missing: {', '.join(missing)}")
    try:
        value = compile_expression(text, vocabulary).eval(data=dict(facts))
        is_bool = value.type() == cel.Type.BOOL
        plain = value.value()
    except BadExpression as exc:
        return Answer(False, True, f"does not compile: {exc}")
    except (RuntimeError, ValueError, TypeError) as exc:
        return Answer(False, True, f"could not be evaluated: {exc}")
    if not is_bool:
        return Answer(False, True, f"could not be evaluated: {plain}")
    return Answer(plain is True, False, f"`{text.strip()}` is {'true' if plain is True else 'false'}")


def holds_for(*, names: Iterable[str], labels: Mapping[str, str], name: str, has: Mapping[str, str]) -> bool:
    """Whether a selector (name globs, labels; both empty: everything) selects a deployment."""
    globs = list(names)
    is_named = not globs or any(fnmatch.fnmatchcase(name, glob) for glob in globs)
    return is_named and all(has.get(key) == value for key, value in labels.items())
