"""`grant`: give roles for the APIs of an extension as the caller, or take them back (`--remove`)."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from provisioner import pipeline
from provisioner.api_groups import RBAC_GROUP
from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl.apis import may_be_there, read_extensions
from provisioner.cli.kubectl.cluster import Record, add_cluster, bare_name, cluster_of, namespace_of
from provisioner.cli.kubectl.terminal import is_agreed, write
from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import FieldConflict, Forbidden, PratiqueError, PreconditionFailed
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
    roles_in_use,
    selector_of,
)
from provisioner.live_reads import WITHOUT_ROLES
from provisioner.rbac import RbacSubject, binding_subjects
from provisioner.render import write_quoted
from provisioner.review.output import permission_text
from provisioner.sentences import number, some, verb
from provisioner.values import Content, JsonObject, Manifest, ObjectRef

_SUBJECT_KINDS = {"user": "User", "group": "Group"}
_ACCOUNT_KIND = "serviceaccount"
_SUBJECT_FORMS = "expected user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME"
_OF_KUBERNETES = "system:serviceaccount:"


def parse_subject(words: str) -> RbacSubject:
    """Names of users and groups may hold colons: the first one ends the kind. For argparse."""
    kind, _, name = words.partition(":")
    if kind in _SUBJECT_KINDS and name.strip():
        if kind == "user" and name.startswith(_OF_KUBERNETES):
            account = name.removeprefix(_OF_KUBERNETES).replace(":", "/", 1)
            raise argparse.ArgumentTypeError(f"{words}: an account is written {_ACCOUNT_KIND}:{account}")
        return RbacSubject(_SUBJECT_KINDS[kind], name)
    namespace, slash, account = name.partition("/")
    if kind != _ACCOUNT_KIND or not (namespace and slash and account) or "/" in account:
        raise argparse.ArgumentTypeError(f"{words}: {_SUBJECT_FORMS}")
    return RbacSubject("ServiceAccount", account, namespace)


def format_subject(subject: RbacSubject) -> str:
    """The same again, for a shell."""
    name = f"{subject.namespace}/{subject.name}" if subject.kind == "ServiceAccount" else subject.name
    return shlex.quote(f"{subject.kind.lower()}:{name}")


def comment_lines(text: str) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())


def as_content(objects: Sequence[JsonObject]) -> Content:
    """Objects as if a bundle held them; nothing applies it, so it has no digest."""
    return Content(tuple(Manifest(body) for body in objects), "", "", (), "")


_BINDINGS = ("ClusterRoleBinding", "RoleBinding")


def revoke(api: ClusterClient, options: argparse.Namespace) -> int:
    """Delete the bindings that fit, and the roles that nobody is bound to then."""
    if options.aggregate is not None:
        raise Usage("--remove goes without --aggregate; `grant --role ROLE --no-aggregate` takes that back alone")
    bindings = _matching_bindings(api, options)
    going: list[Record] = [*bindings, *_unused_roles(api, options, bindings)]
    if not going:
        print("Nothing is left to do: no such grant is there.", file=sys.stderr)
        return 0
    preview = pipeline.permissions(api, as_content(()), as_content(going))
    write(comment_lines(permission_text.as_text(preview, {}, is_bundle=False)))
    write("".join(f"delete {visible(_describe_object(obj))}\n" for obj in going))
    if options.dry_run:
        return 0
    if not is_agreed(options, f"take {number(len(going), 'object')} away"):
        raise Usage("nothing was taken away")
    for obj in going:
        # Exactly the object that was shown.
        ref = ObjectRef.of(obj)
        try:
            api.delete(ref, uid=str(obj["metadata"]["uid"]))
        except PreconditionFailed as exc:
            raise Usage(f"{ref.kind} {ref.place} was made anew meanwhile: run the command again") from exc
        except Forbidden as exc:
            raise Usage(f"Kubernetes refused to delete {ref.kind} {ref.place}: {exc.server_words or exc}") from exc
        print(f"{ref.kind.lower()}/{visible(ref.place)} is deleted", file=sys.stderr)
    return 0


def _matching_bindings(api: ClusterClient, options: argparse.Namespace) -> list[Record]:
    """One that is named whole is read by its name, which takes no right to list."""
    if options.role and options.to and (options.namespace or options.all_namespaces):
        place = "" if options.all_namespaces else options.namespace
        found = api.get(ObjectRef.of(binding_of(options.name, AccessLevel(options.role), options.to, place)))
        return [found] if found is not None and is_ours(found, options.name) else []
    kinds = _BINDINGS[:1] if options.all_namespaces else _BINDINGS[1:] if options.namespace else _BINDINGS
    level = AccessLevel(options.role) if options.role else None
    found_all = [
        binding
        for kind in kinds
        for binding in _list_rbac(api, kind, selector_of(options.name, level), options.namespace)
    ]
    return [binding for binding in found_all if options.to is None or options.to in binding_subjects(binding)]


def _unused_roles(api: ClusterClient, options: argparse.Namespace, going: Sequence[Record]) -> list[Record]:
    """Those that no binding names any more. Who takes it from one subject or place leaves what is aggregated."""
    level = AccessLevel(options.role) if options.role else None
    is_part = options.to is not None or options.namespace or options.all_namespaces
    try:
        roles = _list_rbac(api, "ClusterRole", selector_of(options.name, level))
        every = [binding for kind in _BINDINGS for binding in _list_rbac(api, kind)]
    except Forbidden as exc:
        words = f"the ClusterRole stays, for you may not see who else is bound to it ({exc.server_words or exc})"
        if going:
            print(f"kubectl pratique: {visible(words)}", file=sys.stderr)
        return []
    used = roles_in_use(every, [ObjectRef.of(binding) for binding in going])
    unused = [role for role in roles if ObjectRef.of(role).name not in used]
    return [role for role in unused if not (is_part and is_aggregated(role))]


def _list_rbac(api: ClusterClient, kind: str, selector: str = "", namespace: str = "") -> list[Record]:
    resource = api.resource_of(RBAC_GROUP, "v1", kind)
    assert resource is not None  # every API server has them
    return list(api.list(resource, namespace, label_selector=selector))


def _describe_object(obj: Record) -> str:
    ref = ObjectRef.of(obj)
    who = (
        f" ({', '.join(format_subject(subject) for subject in binding_subjects(obj))})" if ref.kind in _BINDINGS else ""
    )
    return f"{ref.kind} {ref.place}{who}"


HELP = "let someone view, edit or administer the objects of an extension"
EPILOG = """\
Creates the ClusterRole NAME-apis-view, -edit or -admin for the APIs of the
BundleDeployment NAME, and binds it in the namespace of your context or -n, or
with -A in the whole cluster. view: get, list, watch. edit: also create, update,
patch, delete. admin: everything, including subresources and custom verbs. The
roles cannot hide single fields: check whether the extension keeps credentials in
its objects.

The objects, and the rights that the subject gains, are printed first as YAML, so
with --dry-run you can keep them and apply them later. The roles are written as
you, so Kubernetes lets you grant only rights that you have. Running the command
again changes nothing; run it again after an upgrade that adds APIs. The roles
stay when the extension is deleted: use --remove.

--to is user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME.

exit status
  0  done, or nothing to do
  2  it was refused, or an error; nothing more was written
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
        choices=[str(level) for level in AccessLevel],
        help="the role to grant; required unless --remove is given",
    )
    parser.add_argument(
        "--to", metavar="SUBJECT", type=parse_subject, help="the user, group or ServiceAccount (see below)"
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("-n", "--namespace", metavar="NS", default="", help="default: the namespace of the context")
    place.add_argument("-A", "--all-namespaces", action="store_true", help="grant it in the whole cluster")
    parser.add_argument(
        "--aggregate",
        action=argparse.BooleanOptionalAction,
        help="also grant it to everyone with the Kubernetes role of that name; default: unchanged",
    )
    parser.add_argument(
        "--remove", action="store_true", help="revoke access; from everyone unless --role or --to is given"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only print the objects and try them as a server-side dry run"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def grant(options: argparse.Namespace) -> int:
    api = cluster_of(options)
    if options.remove:
        return revoke(api, options)
    if not options.role:
        raise Usage(f"--role is missing: one of {', '.join(AccessLevel)}")
    if options.to is None and not options.aggregate:
        raise Usage("--to is missing: user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME; or --aggregate")
    level = AccessLevel(options.role)
    namespace = "" if options.all_namespaces else options.namespace or namespace_of(options)
    extension = _with_apis(api, options.name)
    _check_place(extension, options.to, namespace)
    if options.to is not None and namespace and not may_be_there(api, namespace):
        raise Usage(f"there is no namespace {namespace}: name another one with -n, or create it first")
    changes = list(_plan_changes(api, extension, (level, options.to, namespace), options.aggregate))
    objects = [planned.wanted for planned in changes]
    wide = frozenset((served.group, served.plural) for served in extension.apis if not served.is_namespaced)
    preview = pipeline.permissions(api, as_content(objects), None, nowhere=wide)
    told = (words.replace(WITHOUT_ROLES, "so all of it counts as gained") for words in preview.problems)
    preview = replace(preview, problems=tuple(told))
    write(comment_lines(permission_text.as_text(preview, {}, is_bundle=False)) + write_quoted(objects))
    if all(planned.is_done for planned in changes):
        print("Nothing is left to do: all of this is there already.", file=sys.stderr)
        return 0
    _dry_run(api, changes)
    if options.dry_run:
        return 0
    if not is_agreed(options, f"grant {level} on the APIs of {options.name}"):
        raise Usage("nothing was granted")
    written: list[ObjectRef] = []
    for change in changes:
        if not change.is_done:
            _apply_change(api, change, written, dry_run=False)
            written.append(change.ref)
            print(f"{change.ref.kind.lower()}/{visible(change.ref.place)} is written", file=sys.stderr)
    place = f"-n {namespace}" if namespace else "-A"
    who = f" --to {format_subject(options.to)} {place}" if options.to is not None else ""
    command = f"kubectl pratique grant {options.name} --remove --role {level}{who}"
    print(f"Take it back with: {command}", file=sys.stderr)
    return 0


def _with_apis(api: ClusterClient, name: str) -> Extension:
    """The extension, where all of its APIs are known: a role that leaves some out would take them from others."""
    found = read_extensions(api, name)
    (extension,) = found.extensions
    unknown = [
        f"what {unread.group}/{unread.version} serves is not known: {unread.why}" for unread in extension.unknown
    ]
    if found.problems or unknown:
        raise Usage(f"nothing was granted, for {'; '.join((*found.problems, *unknown))}")
    if not extension.apis and not extension.is_applied:
        raise Usage(f"{name} has not been applied yet: grant roles for its APIs once a request of it was approved")
    if not extension.apis:
        raise Usage(f"{name} serves no APIs of its own: there is nothing to grant. See `kubectl pratique apis`")
    return extension


def _check_place(extension: Extension, subject: RbacSubject | None, namespace: str) -> None:
    wide = [api.name for api in extension.apis if not api.is_namespaced]
    if subject is None or not namespace or not wide:
        return
    if len(wide) == len(extension.apis):
        raise Usage(
            f"{some(wide)} {verb(len(wide), 'are')} in no namespace, and {extension.name} serves nothing "
            "else: a right to it holds in the whole cluster (--all-namespaces)"
        )
    words = f"{some(wide)} {verb(len(wide), 'are')} in no namespace: without --all-namespaces nothing is granted there"
    print(f"kubectl pratique: {visible(words)}", file=sys.stderr)


def _plan_changes(
    api: ClusterClient, extension: Extension, what: tuple[AccessLevel, RbacSubject | None, str], aggregate: bool | None
) -> Iterator[GrantChange]:
    """The role before its binding. Raises Usage where something else of the same name is there."""
    level, subject, namespace = what
    name = ObjectRef.of(role_of(extension, level, is_aggregated=False))
    live = _read_live(api, name, extension.name)
    as_it_is = live is not None and is_aggregated(live)
    yield GrantChange(role_of(extension, level, is_aggregated=as_it_is if aggregate is None else aggregate), live)
    if subject is not None:
        binding = binding_of(extension.name, level, subject, namespace)
        yield GrantChange(binding, _read_live(api, ObjectRef.of(binding), extension.name))


def _read_live(api: ClusterClient, ref: ObjectRef, extension: str) -> JsonObject | None:
    try:
        live = api.get(ref)
    except Forbidden:
        return None  # writing it finds out
    if live is not None and not is_ours(live, extension):
        raise Usage(f"{ref.kind} {ref.place} is there already, and no grant made it: nothing was granted")
    return live


def _dry_run(api: ClusterClient, changes: Sequence[GrantChange]) -> None:
    """As a dry-run. The API server looks at the role that a binding names, so a new role has to be there before."""
    for change in changes:
        if not change.is_done:
            _apply_change(api, change, [], dry_run=True)
        if change.live is None:
            return


def _apply_change(api: ClusterClient, change: GrantChange, written: Sequence[ObjectRef], *, dry_run: bool) -> None:
    try:
        api.apply(change.wanted, field_manager=MANAGER, dry_run=dry_run)
    except FieldConflict as exc:
        advice = "undo that change, or take the grant back (--remove) and make it again"
        raise Usage(f"{_refusal(change, exc)}. Somebody else changed it: {advice}{_already_written(written)}") from exc
    except PratiqueError as exc:
        is_of_role = isinstance(exc, Forbidden) and change.ref.kind == "ClusterRole"
        raise Usage(f"{_refusal(change, exc)}{ROLE_FIRST if is_of_role else ''}{_already_written(written)}") from exc


def _refusal(change: GrantChange, exc: PratiqueError) -> str:
    return f"the {change.ref.kind} {change.ref.place} was not written. Kubernetes says: {exc.server_words or exc}"


def _already_written(written: Sequence[ObjectRef]) -> str:
    if not written:
        return ""
    there = some([f"{ref.kind} {ref.place}" for ref in written])
    return f". Written before, and still there: {there}; --remove deletes what nobody uses"
