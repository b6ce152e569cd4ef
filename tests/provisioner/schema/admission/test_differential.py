"""`admit` and `validate_crd` beside the real API server, on random CRDs and objects."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from provisioner.schema import admit, validate_crd
from provisioner.schema.fields import same_json
from tests.support.kubernetes.connection import CRD_PATH, Server
from tests.support.patience import wait_for
from tests.support.provisioner.shapes import SCHEMAS, JsonDict, crd, edited, listed, obj, root, values_of, version

CRDS, CREATIONS, UPDATES = 44, 30, 24
FEWEST = 2_000
SEED = int(os.environ.get("PRATIQUE_SEED") or 20261121)
IGNORED_METADATA = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid", "namespace")


@dataclass(frozen=True, slots=True)
class Sample:
    """A schema with values, a later form of it, and values to update the first ones to."""

    old: JsonDict
    new: JsonDict
    values: list[Any]
    wishes: list[Any]


RULES = {
    "string": ["self != 'a'", "self.size() < 3", "self == oldSelf", "self.matches('^[a-z]*$')"],
    "integer": ["self > 1", "oldSelf <= self", "self % 2 == 0", "self < 2.5", "double(self) > 1"],
    "number": ["self >= 0", "int(self) < 2.5", "oldSelf <= self"],
    "boolean": ["self", "!oldSelf || self"],
    "array": ["self.size() != 1", "size(self) >= size(oldSelf)"],
    "object": ["self.size() < 2", "has(self.a)", "!has(self.b) || !has(self.c)", "has(oldSelf.a) == has(self.a)"],
}


@st.composite
def ruled(draw: st.DrawFn) -> JsonDict:
    """A schema, perhaps in a list with keys or embedded, and perhaps with a CEL rule on it."""
    schema = draw(SCHEMAS)
    form = draw(st.integers(0, 9))
    if form == 0:
        keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}
        schema = {**listed(obj("a", a={"type": "string", "maxLength": 9}, b=schema), **keys), "maxItems": 9}
    if schema.get("type") in RULES and draw(st.booleans()):
        rule = {"rule": draw(st.sampled_from(RULES[schema["type"]])), "message": "no"}
        return {**schema, "x-kubernetes-validations": [rule]}
    return schema


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    old = draw(ruled())
    new = edited(draw, old)
    values = draw(st.lists(values_of(old), min_size=CREATIONS, max_size=CREATIONS))
    return Sample(old, new, values, draw(st.lists(values_of(new), min_size=UPDATES, max_size=UPDATES)))


def drawn(count: int) -> list[Sample]:
    """So many samples whose schemas the API server should take."""
    found: list[Sample] = []

    @seed(SEED)
    @settings(
        max_examples=count * 4,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(samples())
    def collect(sample: Sample) -> None:
        if len(found) < count and not any(
            validate_crd(body(0, "d.example.com", it)) for it in (sample.old, sample.new)
        ):
            found.append(sample)

    collect()
    return found


def described(schema: JsonDict, generation: int = 0) -> JsonDict:
    """The root; a field of its own says by its default which form of the CRD the server is working with."""
    return root(schema, generation={"type": "integer", "default": generation})


def body(number: int, group: str, schema: JsonDict, generation: int = 0) -> JsonDict:
    names = {"plural": f"t{number}s", "singular": f"t{number}", "kind": f"T{number}", "listKind": f"T{number}List"}
    found = crd(version(schema=described(schema, generation)), spec={"group": group, "names": names})
    return {**found, "metadata": {"name": f"t{number}s.{group}"}}


@dataclass(frozen=True, slots=True)
class Kind:
    """One CRD on the server."""

    server: Server
    group: str
    number: int

    def thing(self, name: str, spec: Any) -> JsonDict:
        meta = {"name": name}
        return {"apiVersion": f"{self.group}/v1", "kind": f"T{self.number}", "metadata": meta, "spec": spec}

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/v1/namespaces/default/t{self.number}s"

    def create(self, obj: JsonDict, query: str = "?dryRun=All&fieldValidation=Ignore") -> tuple[int, JsonDict]:
        return self.server.ask("POST", self.path + query, obj)

    def update(self, obj: JsonDict) -> tuple[int, JsonDict]:
        name = obj["metadata"]["name"]
        return self.server.ask("PUT", f"{self.path}/{name}?dryRun=All&fieldValidation=Ignore", obj)

    def wait(self, generation: int) -> None:
        """Until the server works with that form of the CRD."""
        probe = self.thing("probe", None)
        del probe["spec"]
        wait_for(
            lambda: self.create(probe),
            f"the server knows generation {generation} of T{self.number}",
            is_so=lambda it: it[0] == 201 and it[1].get("generation") == generation,
        )


@pytest.fixture
def kinds(server: Server) -> Iterator[list[tuple[Kind, Sample]]]:
    """A CRD for each sample, in a group of this run's own; all are deleted afterwards."""
    group = f"d{uuid.uuid4().hex[:8]}.example.com"
    made = [(Kind(server, group, number), sample) for number, sample in enumerate(drawn(CRDS))]
    for kind, sample in made:
        status, answer = server.ask("POST", CRD_PATH, body(kind.number, group, sample.old))
        assert status == 201, (SEED, answer.get("message"), sample.old)
    yield made
    for kind, _ in made:
        server.ask("DELETE", f"{CRD_PATH}/t{kind.number}s.{group}")


def answered(status: int, answer: JsonDict) -> Any:
    """What the server says in the form of an Admission: the object, or the errors in order."""
    if status in (200, 201):
        meta = {name: it for name, it in answer["metadata"].items() if name not in IGNORED_METADATA}
        return {**answer, "metadata": meta}
    causes = (answer.get("details") or {}).get("causes") or []
    return sorted({f"{it['field']}: {it['message']}" for it in causes}) or answer.get("message")


def ours(schema: JsonDict, obj: JsonDict, old: JsonDict | None = None) -> Any:
    found = admit(schema, obj, old=old)
    return sorted({str(it) for it in found.errors}) if found.errors else found.after


def is_same(left: Any, right: Any) -> bool:
    return same_json(left, right) if isinstance(left, dict) and isinstance(right, dict) else bool(left == right)


@pytest.mark.thorough
@pytest.mark.controlplane
def test_admission_is_that_of_the_api_server(kinds: list[tuple[Kind, Sample]]) -> None:
    count = 0
    for kind, sample in kinds:
        kind.wait(0)
        schema = described(sample.old)
        stored: list[JsonDict] = []
        for number, value in enumerate(sample.values):
            obj = kind.thing(f"o{number}", value)
            theirs = answered(*kind.create(obj))
            assert is_same(ours(schema, obj), theirs), (SEED, schema, obj, ours(schema, obj), theirs)
            count += 1
            if isinstance(theirs, dict) and len(stored) < 4:
                stored.append(kind.create(obj, "?fieldValidation=Ignore")[1])
        count += updated(kind, sample, stored)
    assert count >= FEWEST, SEED


def updated(kind: Kind, sample: Sample, stored: list[JsonDict]) -> int:
    """Change the CRD, then try to update what is stored; as many as were tried."""
    changed = body(kind.number, kind.group, sample.new, generation=1)
    _, live = kind.server.ask("GET", f"{CRD_PATH}/{changed['metadata']['name']}")
    live["spec"]["versions"] = changed["spec"]["versions"]
    status, answer = kind.server.ask("PUT", f"{CRD_PATH}/{changed['metadata']['name']}", live)
    assert status == 200, (SEED, answer.get("message"))
    if not stored:
        return 0
    kind.wait(1)
    schema = described(sample.new, 1)
    for number, wish in enumerate(sample.wishes):
        old = stored[number % len(stored)]
        wished = {**old, "spec": old.get("spec") if number < len(stored) else wish}
        theirs = answered(*kind.update(wished))
        plain = {**old, "metadata": {"name": old["metadata"]["name"]}}
        mine = ours(schema, {**plain, "spec": wished["spec"]}, plain)
        assert is_same(mine, theirs), (SEED, schema, plain, wished["spec"], mine, theirs)
    return len(sample.wishes)
