"""Volumes over folders of the image in which its programs lie, or by which it knows whom to trust."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from provisioner.review.base.facts import Check, ReviewRule, StateFacts
from provisioner.review.workloads.mounts import mounts_of
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.review.workloads.workload_changes import of_containers
from provisioner.values import Finding, Section, Severity

_PROGRAMS = ReviewRule("POD-31", Section.PODS, Severity.DANGEROUS)
_TRUST = ReviewRule("POD-31", Section.PODS, Severity.NOTABLE)

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
        if programs := _mounts(pod, _hides_programs):
            yield _PROGRAMS.finding("programs", pod.ref, key=programs, mounts=programs)
        if trusted := _mounts(pod, _hides_trust):
            yield _TRUST.finding("trusted-files", pod.ref, key=trusted, mounts=trusted)


def _mounts(pod: PodSpec, is_over: Callable[[str], bool]) -> list[dict[str, Any]]:
    """What stands where, in which container; folders of the node are told as such (POD-05)."""
    found = (
        {"source": one.source, "path": one.path, "how": list(one.how), "container": container.name}
        for container in pod.containers()
        for one in mounts_of(pod, container)
        if is_over(one.path) and one.kind != "hostPath"
    )
    return sorted(found, key=lambda it: tuple(it.values()))


def _hides_programs(path: str) -> bool:
    is_library = any(_is_in(path, one) for one in _OF_LIBRARIES) and ".so" in path.rpartition("/")[2]
    is_program = any(_is_in(path, one) for one in _OF_PROGRAMS)
    return is_program or is_library or path in _WHOLE or path.startswith(_LOADER)


def _hides_trust(path: str) -> bool:
    return path == "/etc" or any(_is_in(path, one) for one in _OF_TRUST)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


CHECK = Check("hidden files", standing=_standing, claims=(of_containers("POD-31", "volumeMounts"),))
