"""Somebody as they are typed: user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME."""

from __future__ import annotations

import argparse
import shlex

from provisioner.rbac import RbacSubject

_KINDS = {"user": "User", "group": "Group"}
_ACCOUNT = "serviceaccount"
_FORMS = "expected user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME"
_OF_KUBERNETES = "system:serviceaccount:"


def subject_named(words: str) -> RbacSubject:
    """Names of users and groups may hold colons: the first one ends the kind. For argparse."""
    kind, _, name = words.partition(":")
    if kind in _KINDS and name.strip():
        if kind == "user" and name.startswith(_OF_KUBERNETES):
            account = name.removeprefix(_OF_KUBERNETES).replace(":", "/", 1)
            raise argparse.ArgumentTypeError(f"{words}: an account is written {_ACCOUNT}:{account}")
        return RbacSubject(_KINDS[kind], name)
    namespace, slash, account = name.partition("/")
    if kind != _ACCOUNT or not (namespace and slash and account) or "/" in account:
        raise argparse.ArgumentTypeError(f"{words}: {_FORMS}")
    return RbacSubject("ServiceAccount", account, namespace)


def typed(subject: RbacSubject) -> str:
    """The same again, for a shell."""
    name = f"{subject.namespace}/{subject.name}" if subject.kind == "ServiceAccount" else subject.name
    return shlex.quote(f"{subject.kind.lower()}:{name}")
