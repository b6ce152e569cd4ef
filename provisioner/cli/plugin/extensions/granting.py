"""`grant`: who may use the APIs of an extension, by roles as Kubernetes has them for its own, as the caller."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from provisioner import pipeline
from provisioner.cli.plugin.extensions.installed import installed, may_be_there
from provisioner.cli.plugin.extensions.manifests import commented, content_of
from provisioner.cli.plugin.extensions.revoking import revoke
from provisioner.cli.plugin.extensions.subjects import subject_named, typed
from provisioner.cli.plugin.reading import add_cluster, bare_name, cluster_of, namespace_of
from provisioner.cli.plugin.terminal import is_agreed, write
from provisioner.cli.usage import Usage
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import FieldConflict, Forbidden, PratiqueError
from provisioner.escaping import visible
from provisioner.extensions import (
    MANAGER,
    AccessLevel,
    Extension,
    binding_of,
    is_aggregated,
    is_as_wanted,
    is_ours,
    role_of,
)
from provisioner.rbac import RbacSubject
from provisioner.reading import WITHOUT_ROLES
from provisioner.render import write_quoted
from provisioner.review.output import permission_text
from provisioner.sentences import some, verb
from provisioner.values import JsonObject, ObjectRef

HELP = "let somebody view, edit or administrate the objects of an extension"
EPILOG = """\
Makes a ClusterRole for the APIs that the BundleDeployment NAME brings, NAME-apis-
view, -edit or -admin, and binds it: in the namespace of your context or of -n, or
with -A in the whole cluster. view: get, list, watch. edit: also create, update,
patch, delete. admin: everything, with parts of objects and verbs that only the
extension knows. Values of what lies in the objects are not told apart from others:
look whether the extension keeps credentials in them.

The objects are shown first, and what the subject may do then that it may not do
now. What is printed is YAML: with --dry-run it can be kept and applied later. The
roles are written as you, so Kubernetes decides: nobody grants what they do not
hold. To do the same again changes nothing; after an upgrade that brings more APIs,
do it again. Nothing takes the roles away with the extension: --remove does.

--to is user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME.

exit status
  0  done, or nothing was left to do
  2  it was refused, or could not be found out; nothing more was written
"""
ROLE_FIRST = (
    ". Somebody who may write ClusterRoles, and holds what is in this one, can do it once; with `get` on it, you then "
    "only write the binding"
)


@dataclass(frozen=True, slots=True)
class GrantChange:
    """An object of a grant: as it is wanted, and as it is now."""

    wanted: JsonObject
    live: JsonObject | None

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef.of(self.wanted)

    @property
    def is_done(self) -> bool:
        return is_as_wanted(self.live, self.wanted)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=bare_name, help="a BundleDeployment")
    add_cluster(parser)
    parser.add_argument(
        "--role",
        choices=[str(one) for one in AccessLevel],
        help="what they may do with the objects; needed unless with --remove",
    )
    parser.add_argument("--to", metavar="SUBJECT", type=subject_named, help="who: see below")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("-n", "--namespace", metavar="NS", default="", help="default: that of the context")
    place.add_argument("-A", "--all-namespaces", action="store_true", help="in the whole cluster")
    parser.add_argument(
        "--aggregate",
        action=argparse.BooleanOptionalAction,
        help="whether everybody with Kubernetes' role of that name gets it, too; default: as it is",
    )
    parser.add_argument("--remove", action="store_true", help="take it back; without --role or --to, from all")
    parser.add_argument("--dry-run", action="store_true", help="only show it, and let the API server try it")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def grant(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    if options.remove:
        return revoke(api, options)
    level = _level(options)
    namespace = "" if options.all_namespaces else options.namespace or namespace_of(options)
    extension = _with_apis(api, options.name)
    _check_place(extension, options.to, namespace)
    if options.to is not None and namespace and not may_be_there(api, namespace):
        raise Usage(f"there is no namespace {namespace}: name another one with -n, or create it first")
    changes = list(_changes(api, extension, (level, options.to, namespace), options.aggregate))
    _show(api, extension, changes)
    if all(one.is_done for one in changes):
        print("Nothing is left to do: all of this is there already.", file=sys.stderr)
        return 0
    _try(api, changes)
    if options.dry_run:
        return 0
    if not is_agreed(options, f"grant {level} on the APIs of {options.name}"):
        raise Usage("nothing was granted")
    _write(api, changes)
    print(f"Take it back with: {_back(options, level, namespace)}", file=sys.stderr)
    return 0


def _level(options: argparse.Namespace) -> AccessLevel:
    if not options.role:
        raise Usage(f"--role is missing: one of {', '.join(AccessLevel)}")
    if options.to is None and not options.aggregate:
        raise Usage("--to is missing: user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME; or --aggregate")
    return AccessLevel(options.role)


def _with_apis(api: ClusterClient, name: str) -> Extension:
    """The extension, where all of its APIs are known: a role that leaves some out would take them from others."""
    found = installed(api, name)
    (extension,) = found.extensions
    unknown = [f"what {one.group}/{one.version} serves is not known: {one.why}" for one in extension.unknown]
    if found.problems or unknown:
        raise Usage(f"nothing was granted, for {'; '.join((*found.problems, *unknown))}")
    if not extension.apis and not extension.is_applied:
        raise Usage(f"{name} has not been applied yet: grant roles for its APIs once a request of it was approved")
    if not extension.apis:
        raise Usage(f"{name} serves no APIs of its own: there is nothing to grant. See `kubectl pratique apis`")
    return extension


def _check_place(extension: Extension, subject: RbacSubject | None, namespace: str) -> None:
    wide = [one.name for one in extension.apis if not one.is_namespaced]
    if subject is None or not namespace or not wide:
        return
    if len(wide) == len(extension.apis):
        raise Usage(
            f"{some(wide)} {verb(len(wide), 'are')} in no namespace, and {extension.name} serves nothing "
            "else: a right to it holds in the whole cluster (--all-namespaces)"
        )
    words = f"{some(wide)} {verb(len(wide), 'are')} in no namespace: without --all-namespaces nothing is granted there"
    print(f"kubectl pratique: {visible(words)}", file=sys.stderr)


def _changes(
    api: ClusterClient, extension: Extension, what: tuple[AccessLevel, RbacSubject | None, str], aggregate: bool | None
) -> Iterator[GrantChange]:
    """The role before its binding. Raises Usage where something else of the same name is there."""
    level, subject, namespace = what
    name = ObjectRef.of(role_of(extension, level, is_aggregated=False))
    live = _live(api, name, extension.name)
    as_it_is = live is not None and is_aggregated(live)
    yield GrantChange(role_of(extension, level, is_aggregated=as_it_is if aggregate is None else aggregate), live)
    if subject is not None:
        binding = binding_of(extension.name, level, subject, namespace)
        yield GrantChange(binding, _live(api, ObjectRef.of(binding), extension.name))


def _live(api: ClusterClient, ref: ObjectRef, extension: str) -> JsonObject | None:
    try:
        live = api.get(ref)
    except Forbidden:
        return None  # writing it finds out
    if live is not None and not is_ours(live, extension):
        raise Usage(f"{ref.kind} {ref.place} is there already, and no grant made it: nothing was granted")
    return live


def _show(api: ClusterClient, extension: Extension, changes: Sequence[GrantChange]) -> None:
    objects = [one.wanted for one in changes]
    wide = frozenset((one.group, one.plural) for one in extension.apis if not one.is_namespaced)
    preview = pipeline.permissions(api, content_of(objects), None, nowhere=wide)
    told = (words.replace(WITHOUT_ROLES, "so all of it counts as gained") for words in preview.problems)
    preview = replace(preview, problems=tuple(told))
    write(commented(permission_text.as_text(preview, {}, is_bundle=False)) + write_quoted(objects))


def _try(api: ClusterClient, changes: Sequence[GrantChange]) -> None:
    """As a dry-run. The API server looks at the role that a binding names, so a new role has to be there before."""
    for one in changes:
        if not one.is_done:
            _apply(api, one, [], dry_run=True)
        if one.live is None:
            return


def _write(api: ClusterClient, changes: Sequence[GrantChange]) -> None:
    written: list[ObjectRef] = []
    for one in changes:
        if not one.is_done:
            _apply(api, one, written, dry_run=False)
            written.append(one.ref)
            print(f"{one.ref.kind.lower()}/{visible(one.ref.place)} is written", file=sys.stderr)


def _apply(api: ClusterClient, change: GrantChange, written: Sequence[ObjectRef], *, dry_run: bool) -> None:
    try:
        api.apply(change.wanted, field_manager=MANAGER, dry_run=dry_run)
    except FieldConflict as exc:
        advice = "undo that change, or take the grant back (--remove) and make it again"
        raise Usage(f"{_refused(change, exc)}. Somebody else changed it: {advice}{_done(written)}") from exc
    except PratiqueError as exc:
        is_of_role = isinstance(exc, Forbidden) and change.ref.kind == "ClusterRole"
        raise Usage(f"{_refused(change, exc)}{ROLE_FIRST if is_of_role else ''}{_done(written)}") from exc


def _refused(change: GrantChange, exc: PratiqueError) -> str:
    return f"the {change.ref.kind} {change.ref.place} was not written. Kubernetes says: {exc.server_words or exc}"


def _done(written: Sequence[ObjectRef]) -> str:
    if not written:
        return ""
    there = some([f"{one.kind} {one.place}" for one in written])
    return f". Written before, and still there: {there}; --remove deletes what nobody uses"


def _back(options: argparse.Namespace, level: AccessLevel, namespace: str) -> str:
    place = f"-n {namespace}" if namespace else "-A"
    who = f" --to {typed(options.to)} {place}" if options.to is not None else ""
    return f"kubectl pratique grant {options.name} --remove --role {level}{who}"
