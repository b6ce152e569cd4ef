"""`grant --remove`: what grants made is deleted again, and nothing else."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from provisioner import pipeline
from provisioner.api_groups import RBAC_GROUP
from provisioner.cli.plugin.extensions.manifests import commented, content_of
from provisioner.cli.plugin.extensions.subjects import typed
from provisioner.cli.plugin.reading import Record
from provisioner.cli.plugin.terminal import is_agreed, write
from provisioner.cli.usage import Usage
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Forbidden, PreconditionFailed
from provisioner.escaping import visible
from provisioner.extensions import AccessLevel, binding_of, is_aggregated, is_ours, roles_in_use, selector_of
from provisioner.rbac import binding_subjects
from provisioner.review.output import permission_text
from provisioner.sentences import number
from provisioner.values import ObjectRef

_BINDINGS = ("ClusterRoleBinding", "RoleBinding")


def revoke(api: ClusterClient, options: argparse.Namespace) -> int:
    """Delete the bindings that fit, and the roles that nobody is bound to then."""
    if options.aggregate is not None:
        raise Usage("--remove goes without --aggregate; `grant --role ROLE --no-aggregate` takes that back alone")
    bindings = _bindings(api, options)
    going: list[Record] = [*bindings, *_roles(api, options, bindings)]
    if not going:
        print("Nothing is left to do: no such grant is there.", file=sys.stderr)
        return 0
    preview = pipeline.permissions(api, content_of(()), content_of(going))
    write(commented(permission_text.as_text(preview, {}, is_bundle=False)))
    write("".join(f"delete {visible(_words(one))}\n" for one in going))
    if options.dry_run:
        return 0
    if not is_agreed(options, f"take {number(len(going), 'object')} away"):
        raise Usage("nothing was taken away")
    for one in going:
        _delete(api, one)
    return 0


def _bindings(api: ClusterClient, options: argparse.Namespace) -> list[Record]:
    """One that is named whole is read by its name, which takes no right to list."""
    if options.role and options.to and (options.namespace or options.all_namespaces):
        place = "" if options.all_namespaces else options.namespace
        found = api.get(ObjectRef.of(binding_of(options.name, AccessLevel(options.role), options.to, place)))
        return [found] if found is not None and is_ours(found, options.name) else []
    kinds = _BINDINGS[:1] if options.all_namespaces else _BINDINGS[1:] if options.namespace else _BINDINGS
    level = AccessLevel(options.role) if options.role else None
    found_all = [
        one for kind in kinds for one in _listed(api, kind, selector_of(options.name, level), options.namespace)
    ]
    return [one for one in found_all if options.to is None or options.to in binding_subjects(one)]


def _roles(api: ClusterClient, options: argparse.Namespace, going: Sequence[Record]) -> list[Record]:
    """Those that no binding names any more. Who takes it from one subject or place leaves what is aggregated."""
    level = AccessLevel(options.role) if options.role else None
    is_part = options.to is not None or options.namespace or options.all_namespaces
    try:
        roles = _listed(api, "ClusterRole", selector_of(options.name, level))
        every = [one for kind in _BINDINGS for one in _listed(api, kind)]
    except Forbidden as exc:
        words = f"the ClusterRole stays, for you may not see who else is bound to it ({exc.server_words or exc})"
        if going:
            print(f"kubectl pratique: {visible(words)}", file=sys.stderr)
        return []
    used = roles_in_use(every, [ObjectRef.of(one) for one in going])
    unused = [one for one in roles if ObjectRef.of(one).name not in used]
    return [one for one in unused if not (is_part and is_aggregated(one))]


def _listed(api: ClusterClient, kind: str, selector: str = "", namespace: str = "") -> list[Record]:
    resource = api.resource_of(RBAC_GROUP, "v1", kind)
    assert resource is not None  # every API server has them
    return list(api.list(resource, namespace, label_selector=selector))


def _words(obj: Record) -> str:
    ref = ObjectRef.of(obj)
    who = f" ({', '.join(typed(one) for one in binding_subjects(obj))})" if ref.kind in _BINDINGS else ""
    return f"{ref.kind} {ref.place}{who}"


def _delete(api: ClusterClient, obj: Record) -> None:
    """Exactly the object that was shown."""
    ref = ObjectRef.of(obj)
    try:
        api.delete(ref, uid=str(obj["metadata"]["uid"]))
    except PreconditionFailed as exc:
        raise Usage(f"{ref.kind} {ref.place} was made anew meanwhile: run the command again") from exc
    except Forbidden as exc:
        raise Usage(f"Kubernetes refused to delete {ref.kind} {ref.place}: {exc.server_words or exc}") from exc
    print(f"{ref.kind.lower()}/{visible(ref.place)} is deleted", file=sys.stderr)
