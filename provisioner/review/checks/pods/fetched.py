"""Containers whose commands fetch what they run, so that no review has seen it, or that give others a shell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from provisioner.masking import masked
from provisioner.review.base.facts import Check, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.workloads.fetched_code import FetchedCode, fetched_code
from provisioner.review.workloads.pod_specs import Container, PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import HOOKS, PROBES, of_containers
from provisioner.values import Finding, Section, Severity

_FETCHED = ReviewRule("POD-29", Section.PODS, Severity.DANGEROUS)
_INSTALLED = ReviewRule("POD-29", Section.PODS, Severity.NOTABLE)


@dataclass(frozen=True, slots=True)
class _Fetching:
    """One command that fetches: of which container, in which field, and its words as they may be shown."""

    container: str
    path: tuple[str | int, ...]
    does: tuple[FetchedCode, ...]
    words: str

    @property
    def is_installing(self) -> bool:
        return set(self.does) == {FetchedCode.INSTALLS}


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        found = list(_of_pod(pod))
        installing = [one for one in found if one.is_installing]
        for rule, told in ((_FETCHED, [one for one in found if not one.is_installing]), (_INSTALLED, installing)):
            if told:
                does = list(dict.fromkeys(what for one in told for what in one.does))
                key = [[one.container, str(one.path[-1]), one.words] for one in told]
                commands = [{"container": one.container, "command": one.words} for one in told]
                yield rule.finding("fetches", pod.ref, where=told[0].path, key=key, does=does, commands=commands)


def _of_pod(pod: PodSpec) -> Iterator[_Fetching]:
    for container in pod.containers():
        named = ((str(one.get("name")), one.get("value")) for one in maps(container.body.get("env")))
        variables = {name: value for name, value in named if isinstance(value, str)}
        for path, words in _commands(container):
            does = tuple(fetched_code(words, variables))
            if does:
                text = " ".join(masked(" ".join(words)).split())
                yield _Fetching(container.name, (*container.path, *path), does, text)


def _commands(container: Container) -> Iterator[tuple[tuple[str | int, ...], list[str]]]:
    """Each command that runs in a container, with the field that it is in."""
    body = container.body
    words = [*items(body.get("command")), *items(body.get("args"))]
    yield ("command",) if body.get("command") else ("args",), list(map(str, words))
    hooks = mapping(body.get("lifecycle"))
    told = {("lifecycle", name): hooks.get(name) for name in HOOKS} | {(name,): body.get(name) for name in PROBES}
    for path, handler in told.items():
        yield (*path, "exec", "command"), list(map(str, items(mapping(mapping(handler).get("exec")).get("command"))))


_CLAIMS = (of_containers("POD-29", "command", "args", "lifecycle", *PROBES),)
CHECK = Check("fetched code", standing=_standing, claims=_CLAIMS)
