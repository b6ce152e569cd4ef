"""Settings of a pod: names of hosts, deadlines and kernel parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin.changes import FieldRefusal, Path, is_number, numbered, quoted
from provisioner.builtin.pods.security import of_seccomp
from provisioner.json_values import as_mapping, value_at

_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
MOST_NAMESERVERS, MOST_SEARCHES, LONGEST_SYSCTL = 3, 32, 253


def of_settings(pod: Mapping[str, Any], path: Path) -> Iterator[FieldRefusal]:
    if pod.get("hostPID") is True and pod.get("shareProcessNamespace") is True:
        yield FieldRefusal((*path, "shareProcessNamespace"), "must not be true where hostPID is")
    servers, searches = value_at(pod, "dnsConfig", "nameservers") or [], value_at(pod, "dnsConfig", "searches") or []
    if pod.get("dnsPolicy") == "None" and not servers:
        yield FieldRefusal((*path, "dnsConfig", "nameservers"), "must not be empty where the policy is None")
    if len(servers) > MOST_NAMESERVERS:
        yield FieldRefusal(
            (*path, "dnsConfig", "nameservers"), f"must be at most {MOST_NAMESERVERS}, and are {len(servers)}"
        )
    if len(searches) > MOST_SEARCHES:
        yield FieldRefusal(
            (*path, "dnsConfig", "searches"), f"must be at most {MOST_SEARCHES}, and are {len(searches)}"
        )
    seconds = pod.get("activeDeadlineSeconds")
    if is_number(seconds) and seconds < 1:
        yield FieldRefusal((*path, "activeDeadlineSeconds"), f"must be at least 1, and is {seconds}")
    context = as_mapping(pod.get("securityContext"))
    yield from of_seccomp(context, (*path, "securityContext"))
    names: set[str] = set()
    for place, one in numbered(context.get("sysctls")):
        name = str(one.get("name") or "")
        where = (*path, "securityContext", "sysctls", place, "name")
        if len(name) > LONGEST_SYSCTL or not _SYSCTL.fullmatch(name):
            yield FieldRefusal(where, f"must be the name of a kernel parameter, and is {quoted(name)}")
        elif name in names:
            yield FieldRefusal(where, f"stands there twice: {quoted(name)}")
        names.add(name)
