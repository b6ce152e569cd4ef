"""What has to be so in the cluster before anything is applied."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.policy import CONSTRAINT, ConstraintFacts, check_constraints, expressions_of, facts_of, unmet
from provisioner.errors import ConstraintOverLimit, InvalidConstraint
from provisioner.expressions import ExpressionAnswer, ExpressionOutcome
from provisioner.expressions.evaluator import ask
from tests.support.memory import resident_bytes

AROUND = ConstraintFacts(
    kubernetes_version="v1.36.3-gke.100",
    apis=frozenset({"v1/Pod", "cert-manager.io/v1/Certificate"}),
    versions={"cert-manager": "v1.14.2", "moving": "main", "ill": "1.0.0"},
    healthy=frozenset({"cert-manager", "moving"}),
)


def api(group: str, kind: str) -> dict[str, Any]:
    return {"requiredAPIs": [{"group": group, "version": "v1", "kind": kind}]}


def needs(name: str, versions: str = "") -> dict[str, Any]:
    return {"requiredBundleDeployments": [{"name": name, **({"versionRange": versions} if versions else {})}]}


def asks(expression: str, message: str = "") -> dict[str, Any]:
    return {"cel": [{"expression": expression, "message": message}]}


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        pytest.param({}, "", id="none"),
        pytest.param({"kubernetesVersionRange": ">=1.36.3 <1.37.0"}, "", id="the version, without the vendor's suffix"),
        pytest.param({"kubernetesVersionRange": ">=1.37.0"}, "Kubernetes is v1.36.3-gke.100; >=1.37.0", id="too old"),
        pytest.param(api("cert-manager.io", "Certificate"), "", id="an API"),
        pytest.param(api("", "Pod"), "", id="an API of the core group"),
        pytest.param(api("cert-manager.io", "Issuer"), "cert-manager.io/v1/Issuer is not served", id="no such API"),
        pytest.param(
            {"requiredAPIs": [{"group": "policy", "version": "v1beta1", "kind": "PodSecurityPolicy"}]},
            "PodSecurityPolicy is not served by the cluster: Kubernetes no longer serves it as of 1.25",
            id="an API that Kubernetes removed",
        ),
        pytest.param(needs("cert-manager", ">=1.14"), "", id="another one"),
        pytest.param(needs("cert-manager", "<1.14"), "runs v1.14.2; <1.14 is required", id="another one too new"),
        pytest.param(needs("moving", ">=1.0"), "runs main; >=1.0 is required", id="another one without a version"),
        pytest.param(needs("moving"), "", id="another one of any version"),
        pytest.param(needs("ill"), "BundleDeployment ill is not healthy", id="another one that is ill"),
        pytest.param(
            needs("gone"), "BundleDeployment gone has no running revision", id="another one that is not there"
        ),
        pytest.param(asks("'ill' in versions && !('ill' in healthy)"), "", id="CEL"),
        pytest.param(
            asks("'ill' in healthy", "ill has to be well"), "ill has to be well: `'ill' in", id="CEL not true"
        ),
        pytest.param(asks("versions['x'] == '1'"), "could not be evaluated", id="CEL that cannot be evaluated"),
    ],
)
def test_what_is_unmet_is_said(constraints: dict[str, Any], words: str) -> None:
    texts = expressions_of(constraints)
    check_constraints(constraints, ask(CONSTRAINT, texts))
    found = unmet(constraints, AROUND, ask(CONSTRAINT, texts, facts_of(AROUND)))
    assert len(found) == (1 if words else 0), found
    assert words in "".join(found)


@pytest.mark.parametrize(
    "constraints",
    [
        pytest.param({"kubernetesVersionRange": "latest and greatest"}, id="a range"),
        pytest.param(needs("x", "^1.0"), id="a range of another grammar"),
        pytest.param(asks("worst == 'safe'"), id="a fact of policies"),
        pytest.param(asks("1 + 1"), id="no question"),
        pytest.param(asks("'a' in"), id="no CEL"),
        pytest.param(asks("true" + " && true" * 2000), id="too long"),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_else(constraints: dict[str, Any]) -> None:
    with pytest.raises(InvalidConstraint):
        check_constraints(constraints, ask(CONSTRAINT, expressions_of(constraints)))


SHARED = "[kubernetes_version]" + ".map(a, [a, a])" * 26
HOSTILE = {
    "doubling": ("[kubernetes_version]" + ".map(a, a + a)" * 26 + ".size() > 0", "it needs more memory than 256 MiB"),
    "looping": (
        "[0,1,2,3,4,5,6,7,8,9].all(a, " * 7 + "true" + ")" * 7,
        "it loops more often than the iteration budget",
    ),
    "comparing": (f"{SHARED} == {SHARED}", "it took longer than "),
}


def said_of(expression: str) -> str:
    constraints = {"cel": [{"expression": it, "message": "m"} for it in (expression, "'v1/Pod' in apis")]}
    texts = expressions_of(constraints)
    check_constraints(constraints, ask(CONSTRAINT, texts))
    return "; ".join(unmet(constraints, AROUND, ask(CONSTRAINT, texts, facts_of(AROUND))))


@pytest.mark.parametrize("name", ["doubling", "looping"])
def test_S26_a_constraint_over_a_limit_is_said_to_be_never_met(name: str) -> None:
    before = resident_bytes()
    expression, words = HOSTILE[name]
    with pytest.raises(ConstraintOverLimit, match=f"could not be evaluated: {words}.*As written, it can never be met"):
        said_of(expression)
    assert resident_bytes() - before < 32 * 2**20


def test_S26_a_constraint_that_takes_too_long_is_not_met() -> None:
    """On a busy machine nobody knows whether it is its own fault: then it waits and is asked again."""
    expression, words = HOSTILE["comparing"]
    try:
        found = said_of(expression)
    except ConstraintOverLimit as exc:
        found = str(exc)
    assert f"could not be evaluated: {words}" in found


def test_S26_over_the_limit_of_processor_time_is_its_own_fault_and_a_full_machine_is_not() -> None:
    slow, busy = (
        ExpressionAnswer(ExpressionOutcome.ENDED, words="it took longer", exceeds=own) for own in (True, False)
    )
    with pytest.raises(ConstraintOverLimit, match="it took longer"):
        unmet(asks("true"), AROUND, [slow])
    with pytest.raises(ConstraintOverLimit, match="it took longer"):
        check_constraints(asks("true"), [slow])
    assert unmet(asks("true"), AROUND, [busy]) == ["could not be evaluated: it took longer"]


def test_S26_what_ended_a_moment_ago_is_over_its_limit_without_a_second_try() -> None:
    text = HOSTILE["doubling"][0]
    answers = [ask(CONSTRAINT, [text], facts_of(AROUND))[0] for _ in range(2)]
    assert [one.exceeds for one in answers] == [True, True]


def test_S26_a_constraint_that_nobody_could_compile_now_is_asked_again() -> None:
    """No free evaluator is no fault of the request: it waits, and does not fail."""
    busy = ExpressionAnswer(ExpressionOutcome.ENDED, words="no evaluator was free")
    constraints = asks("true")
    check_constraints(constraints, [busy])
    assert unmet(constraints, AROUND, [busy]) == ["could not be evaluated: no evaluator was free"]


QUOTING = {
    "a key": ("versions['cert-' + 'manager' + versions['moving']] == ''", "main"),
    "a number": ("int(versions['moving']) == 1", "main"),
    "a time": ("timestamp(versions['moving']) == timestamp(0)", "main"),
    "an index": ("apis[99] == ''", "99"),
}


@pytest.mark.parametrize(("expression", "value"), QUOTING.values(), ids=QUOTING)
def test_S27_what_could_not_be_evaluated_quotes_no_value(expression: str, value: str) -> None:
    (found,) = unmet(asks(expression), AROUND, ask(CONSTRAINT, [expression], facts_of(AROUND)))
    assert found.startswith("could not be evaluated: ")
    assert value not in found


def test_a_key_that_the_expression_names_is_named() -> None:
    (found,) = unmet(asks("versions['x'] == ''"), AROUND, ask(CONSTRAINT, ["versions['x'] == ''"], facts_of(AROUND)))
    assert found == "could not be evaluated: the key x is not there"
