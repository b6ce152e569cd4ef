"""What a policy and a rule of a schema cost in the evaluator, beside CEL's library in this very process.

Run by `make bench`. An apply asks each guard before every phase: the evaluator has to answer within a small part of the
time that one write to the API server takes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from cel_expr_python import cel

from approvals.policy import POLICY
from provisioner.expressions import ExpressionAnswer, ExpressionQuestion, evaluator, runtime
from provisioner.expressions.evaluator import ask
from provisioner.review.crds.object_fates import Fate, fates
from provisioner.schema.cel import runtime as rules
from provisioner.schema.definition.crd import Crd
from tests.support.approvals.policies import FACTS

EXPRESSION = 'worst_new in ["safe", "notable"] && actions["delete"] == 0'
ROUNDS, WARM_UP = 500, 20
MOST_MILLISECONDS, START_SECONDS = 2.0, 2.0
OBJECTS, ITEMS, PAIRS, TIMES_IN_PROCESS = 200, 20, 3, 1.5
RULES = "x-kubernetes-validations"


def milliseconds(work: Callable[[], object]) -> float:
    took = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        took.append(time.perf_counter() - started)
    return statistics.median(took[WARM_UP:]) * 1000


def test_figures_of_a_policy() -> None:
    evaluator.end_children()
    started = time.perf_counter()
    assert ask(POLICY, [EXPRESSION], FACTS)[0].is_true
    first = time.perf_counter() - started
    ours = milliseconds(lambda: ask(POLICY, [EXPRESSION], FACTS))
    types = {"worst_new": cel.Type.STRING, "actions": cel.Type.Map(cel.Type.STRING, cel.Type.INT)}
    bare = cel.NewEnv(variables=types).compile(EXPRESSION)
    facts = {name: FACTS[name] for name in types}
    theirs = milliseconds(lambda: bare.eval(data=facts).value())
    print(
        f"\na policy: {ours:.3f} ms in the evaluator (the first {first * 1000:.0f} ms), {theirs:.3f} ms in this process"
    )
    assert ours <= MOST_MILLISECONDS
    assert first <= START_SECONDS


def ruled(described: dict[str, Any], *texts: str) -> dict[str, Any]:
    return {**described, RULES: [{"rule": text} for text in texts]}


def crd(longest: int) -> Crd:
    """20 rules on six nodes, six of them for each of the items, and four that read the old value."""
    item = {"name": {"type": "string"}, "port": {"type": "integer"}, "weight": {"type": "integer"}}
    known = ruled(
        {"type": "object", "properties": {**item, "tags": {"type": "array", "items": {"type": "string"}}}},
        "self.port > 0",
        "self.port < 65536",
        "!has(self.weight) || self.weight <= 100",
        "self.name.matches('^[a-z0-9-]+$')",
        "size(self.tags) <= 10",
        "self.weight >= oldSelf.weight || self.port == oldSelf.port",
    )
    items = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": known}
    labels = {"type": "object", "additionalProperties": {"type": "string"}}
    fields = {
        "replicas": ruled({"type": "integer"}, "self >= 0", "self <= 1000", "self >= oldSelf - 50"),
        "mode": ruled({"type": "string"}, "self in ['a', 'b', 'c']", "self == oldSelf"),
        "labels": ruled(labels, "self.all(k, k.size() < 64)", "size(self) < 50"),
        "items": ruled(items, "self.all(i, i.port > 0)", "size(self) <= 100", "self == oldSelf"),
        "most": {"type": "integer"},
        "note": {"type": "string", "maxLength": longest},
    }
    texts = (
        "self.replicas <= self.most",
        "self.replicas < 500 || self.mode == 'c'",
        "has(self.items)",
        "self.most > 0",
    )
    spec = ruled({"type": "object", "properties": fields}, *texts)
    version = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"plural": "widgets", "kind": "Widget"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": version}]
    return Crd({"spec": {"group": "x.io", "scope": "Namespaced", "names": names, "versions": versions}})


def widget(number: int) -> dict[str, Any]:
    items = [
        {"name": f"i{at}", "port": 1 + number * ITEMS + at, "weight": (number + at) % 100, "tags": ["a", f"t{number}"]}
        for at in range(ITEMS)
    ]
    labels = {f"k{at}": f"v{number}" for at in range(5)}
    spec = {"replicas": number % 100, "mode": "abc"[number % 3], "most": 200, "labels": labels, "items": items}
    meta = {"name": f"w{number}", "namespace": "d", "uid": str(number)}
    return {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": meta, "spec": {**spec, "note": "x" * (number % 50)}}


def in_process(questions: Sequence[ExpressionQuestion], **_: Any) -> list[ExpressionAnswer]:
    """CEL's library in this very process, without limits, each question on its own."""
    found = []
    for one in questions:
        values = runtime.Values(one.data) if one.data is not None else None
        found.append(runtime.answer(one.language, one.text, values, wants_program=False))
    return found


def test_figures_of_the_rules_of_stored_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, objects = crd(60), crd(40), [widget(number) for number in range(OBJECTS)]

    def tried() -> tuple[float, list[Fate]]:
        began = time.perf_counter()
        found = fates(old, new, "v1", {"v1": objects})["v1"]
        return time.perf_counter() - began, found

    pairs = []
    for _ in range(PAIRS):  # one after the other: on a machine with neighbours both are slow at the same time
        ours, found = tried()
        with monkeypatch.context() as patch:
            patch.setattr(rules, "ask_all", in_process)
            theirs, expected = tried()
        assert found == expected
        assert found
        pairs.append((ours, theirs))
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    seconds = [statistics.median(side) for side in zip(*pairs, strict=True)]
    print(
        f"\n{OBJECTS} stored objects of {ITEMS} items and 20 rules: {seconds[0]:.2f} s in the evaluator, {seconds[1]:.2f}"
        f" s in this process, {ratio:.2f} times as long"
    )
    assert ratio <= TIMES_IN_PROCESS
