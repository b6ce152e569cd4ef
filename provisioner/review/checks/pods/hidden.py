"""Volumes over folders of the image in which its programs lie, or by which it knows whom to trust."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, ReviewRule, StateFacts, said
from provisioner.review.workloads.mounts import mounts_of
from provisioner.review.workloads.pod_changes import of_containers
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.sentences import some_phrases
from provisioner.values import Finding, Section, Severity

_PROGRAMS = ReviewRule("POD-31", Section.PODS, Severity.DANGEROUS)
_TRUST = ReviewRule("POD-31", Section.PODS, Severity.NOTABLE)

MAX_TOLD = 3
# What lies in these folders is run.
_OF_PROGRAMS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/libexec")
_OF_LIBRARIES = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib")
_WHOLE = frozenset({"/", "/usr", "/usr/local", *_OF_LIBRARIES})
_LOADER = "/etc/ld.so."
# Who users are, whom programs trust, where names lead, and what shells do first.
_OF_TRUST = (
    "/etc/ca-certificates",
    "/etc/cron.d",
    "/etc/crontab",
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/pam.d",
    "/etc/passwd",
    "/etc/pki",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/resolv.conf",
    "/etc/shadow",
    "/etc/ssl",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
)


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        programs, trust = _told(pod, is_dangerous=True), _told(pod, is_dangerous=False)
        if programs:
            message = f"{said(pod.ref)} replaces programs of its image: it mounts {some_phrases(programs, MAX_TOLD)}"
            yield _PROGRAMS.at(pod.ref, message, evidence={"mounts": programs}, key=programs)
        if trust:
            message = f"{said(pod.ref)} replaces files that its image trusts: it mounts {some_phrases(trust, MAX_TOLD)}"
            yield _TRUST.at(pod.ref, message, evidence={"mounts": trust}, key=trust)


def _told(pod: PodSpec, *, is_dangerous: bool) -> list[str]:
    """What stands where, in which container; folders of the node are told as such (POD-05)."""
    found = []
    for container in pod.containers():
        for one in mounts_of(pod, container):
            is_over = _hides_programs(one.path) if is_dangerous else _hides_trust(one.path)
            if is_over and one.kind != "hostPath":
                found.append(f"{one.words} in {container.name}")
    return sorted(found)


def _hides_programs(path: str) -> bool:
    is_library = any(_is_in(path, one) for one in _OF_LIBRARIES) and ".so" in path.rpartition("/")[2]
    is_program = any(_is_in(path, one) for one in _OF_PROGRAMS)
    return is_program or is_library or path in _WHOLE or path.startswith(_LOADER)


def _hides_trust(path: str) -> bool:
    return path == "/etc" or any(_is_in(path, one) for one in _OF_TRUST)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


CHECK = Check("hidden files", standing=_standing, claims=(of_containers("POD-31", "volumeMounts"),))
