"""Whom a proxy's word means on a cluster: its names, with the prefixes of that cluster's API server."""

from __future__ import annotations

from approvals.proxies.declared import ClusterNames
from approvals.proxies.headers import Said
from provisioner.values import Identity

RESERVED = "system:"
MAX_CHARACTERS = 253


class NameRefused(Exception):
    """The proxy's word makes nobody on this cluster; the message says why."""


def identity_on(names: ClusterNames, said: Said) -> Identity:
    """Raises NameRefused."""
    username = names.username_prefix + said.user
    prefix = names.groups_prefix
    groups = () if prefix is None else tuple(sorted(prefix + group for group in said.groups))
    for name in (username, *groups):
        if name.startswith(RESERVED):
            raise NameRefused(f"{name} starts with {RESERVED}, which only the cluster itself may prove")
        if len(name) > MAX_CHARACTERS:
            raise NameRefused(f"a name of more than {MAX_CHARACTERS} characters is nobody's")
    return Identity(username, groups)
