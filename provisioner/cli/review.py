"""`pratique review` and `pratique crd-diff`, and how a bundle named on the command line becomes content.

Exit status: 0 nothing at or above --fail-on; 1 there is; 2 could not find out (also wrong usage). A finding of severity
unknown gives 2, unless something worse (critical, breaking) gives 1. With --old only what is new counts.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from provisioner import pipeline
from provisioner.cli import unanswered
from provisioner.cli.objects import stored_in
from provisioner.cli.usage import Usage
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import uid_of
from provisioner.errors import ClusterError
from provisioner.render import BUILT_IN, IsNamespaced, Target, format_names, is_told_of_target, load_all
from provisioner.review.base.facts import Stored
from provisioner.review.base.record import to_record
from provisioner.review.base.text import visible
from provisioner.review.crd_diff import (
    CrdDifference,
    crdify_differences,
    crds_of,
    differences,
    strangers,
)
from provisioner.review.crd_diff import to_record as crd_record
from provisioner.review.crds.live_scene import CRD
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text, crds_as_text
from provisioner.review.rules.shown import as_text as explained
from provisioner.review.rules.shown import rules_of
from provisioner.review.rules.shown import to_record as explained_record
from provisioner.review.workloads.container_changes import container_changes
from provisioner.review.workloads.container_changes import to_record as containers_record
from provisioner.schema import CrdifyConfig
from provisioner.source import Credentials, EgressPolicy, GitSource, HttpSource, ImageSource, LocalSource, Source
from provisioner.unpack import UnpackLimits
from provisioner.values import Content, GroupKind, Identity, JsonObject, ObjectIdentity, Report, Severity

OK, FINDINGS, UNKNOWN = 0, 1, 2
NEVER = "never"
DEFAULT_NAMESPACE = "default"
DEFAULT_ACCOUNT = "default"

_COMMIT = re.compile(r"[0-9a-f]{40}")
_IMAGE = re.compile(r"[a-z0-9][a-z0-9.-]*(?::\d+)?/[a-z0-9._/-]+(?::\w[\w.-]{0,127}|@sha256:[0-9a-f]{64}|)", re.ASCII)
_GIT = re.compile(r"git\+(?P<repository>https?://[^#@]+)@(?P<ref>[^@#]+)(?:#(?P<directory>.*))?")
_VERSION = re.compile(r"v?\d+(\.\d+)*([.+-].*)?")


@dataclass(frozen=True, slots=True)
class ReviewCommand:
    """One subcommand: `add` declares its arguments, `run` answers with the exit status.

    `unanswered` makes the JSON that it prints where it could not find out, of its options, the reason and its code.
    """

    name: str
    help: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    epilog: str
    unanswered: Callable[[argparse.Namespace, str, str], object] | None = None


BUNDLE_EPILOG = """\
BUNDLE is one of
  a folder, or an archive file (.tar, .tar.gz, .tar.zst, .zip)
  an image: oci://HOST/REPOSITORY@sha256:..., or HOST/REPOSITORY:TAG
  a git repository: git+https://HOST/PATH@REF#FOLDER, where REF is a branch,
    a version tag (v1.2.3), refs/tags/TAG or a commit; #FOLDER may be left out
  an archive by http: https://HOST/PATH.tar.gz#sha256:...

private registries
  are asked without credentials, unless --docker-config or --docker-login says
  where to take them from. Each entry of `auths` goes to the registry that it
  is written for. Programs that keep passwords (credsStore, credHelpers) are
  not run.
"""
_REVIEW_EPILOG = f"""\
{BUNDLE_EPILOG}
what runs already
  With --kubeconfig, objects that Helm, kubectl, Argo CD or somebody else runs
  are planned as if they were to be adopted. One line names each present owner,
  and what a request needs for it. With --old they are taken for ours.

stored objects
  Two schemas prove that values are refused or pruned, not that anybody has such
  a value. A finding that depends on it says "breaks only if" (and in JSON
  certainty: depends-on-objects). --kubeconfig reads the objects of the CRDs
  that change from a cluster. Without one, --objects names a file or a folder
  with all that is stored, as `kubectl get KIND -A -o yaml` prints it; an empty
  list says that none is. A finding then names the objects, or is lowered; where
  none is stored, one line says what changes for clients of the CRD. Of a kind
  that is not in it nothing is settled.

exit status
  0  nothing at or above --fail-on
  1  there is
  2  could not find out: an error, or an unknown finding and nothing worse;
     with -o json an error is a report, too, with one unknown finding
"""
_CRD_EPILOG = """\
stored objects
  --objects FILE holds all that is stored, as `kubectl get KIND -A -o yaml`
  prints it: lists or single objects, of several kinds too; of a folder every
  .yaml, .yml and .json file is read. They settle what two schemas leave open. A
  change that refuses or prunes one of them is breaking. Where all of them pass,
  what is stored is safe, and the change is dangerous still: those who write may
  be refused. It is the same where none is stored. Of a kind that is not in FILE
  nothing is settled, unless it holds an empty list, of that kind or as kubectl
  prints it for none found.

exit status
  0  every CRD is safe
  1  one is dangerous or breaking
  2  could not find out: an error, or one is unknown and none is breaking;
     with -o json an error is an element, too: an unknown one without a name
"""


# review


def _add_review(parser: argparse.ArgumentParser) -> None:
    add_review_bundles(parser)
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="ask this cluster; nothing is changed in it")
    parser.add_argument(
        "--objects", metavar="FILE|DIR", type=Path, help="all objects stored of CRDs that change; see below"
    )
    parser.add_argument("--context", default="", help="the context of the kubeconfig to use")
    add_review_options(parser)


def add_review_bundles(parser: argparse.ArgumentParser) -> None:
    """What is reviewed."""
    parser.add_argument("bundle", metavar="BUNDLE", help="what shall run")
    parser.add_argument("--old", metavar="BUNDLE", help="what runs now: only what is new beside it counts")


def add_review_options(parser: argparse.ArgumentParser) -> None:
    """How it is reviewed and told, whichever cluster is asked."""
    parser.add_argument("--install-namespace", metavar="NS", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    parser.add_argument(
        "--service-account", metavar="NAME", default="", help="plan as this account of the install namespace"
    )
    parser.add_argument(
        "--allow-images",
        metavar="PLACE",
        action="append",
        default=[],
        help="where images may come from: a registry, or the beginning of a repository; may be given several times",
    )
    add_bundle_options(parser)
    parser.add_argument("-o", "--output", choices=("text", "json", "html"), default="text", help="default: %(default)s")
    parser.add_argument("--all", action="store_true", help="text: what is safe or as before, and every place, too")
    parser.add_argument(
        "--diff", action="store_true", help="text: the lines that change, too; values like credentials are hidden"
    )
    parser.add_argument(
        "--show-credentials", action="store_true", help="with --diff: show them, but never values of Secrets"
    )
    parser.add_argument("--explain", action="store_true", help="text: what each rule that was met means, too")
    parser.add_argument(
        "--fail-on",
        choices=[NEVER, *map(str, Severity)],
        default=str(Severity.DANGEROUS),
        metavar="SEVERITY",
        help=f"the least severity that gives exit status 1: {', '.join(Severity)} or {NEVER}; default: %(default)s",
    )


def add_bundle_options(parser: argparse.ArgumentParser) -> None:
    """The options by which `content_of` reads a bundle."""
    parser.add_argument("--format", default="plain", choices=format_names(), help="default: %(default)s")
    parser.add_argument("--recursive", action="store_true", help="plain: read manifests in subfolders, too")
    parser.add_argument("--config", metavar="FILE", type=Path, help="options of the format, as JSON")
    login = parser.add_mutually_exclusive_group()
    login.add_argument(
        "--docker-config", metavar="FILE", type=Path, help="open registries with the auths of this config.json"
    )
    login.add_argument(
        "--docker-login",
        action="store_true",
        help="the same with the config.json of `docker login`: in the folder DOCKER_CONFIG, or else in ~/.docker",
    )


def _run_review(options: argparse.Namespace) -> int:
    if options.service_account and options.kubeconfig is None:
        raise Usage("--service-account needs a cluster to ask: name it with --kubeconfig")
    stored = _stored(options)
    cluster = cluster_of(options)
    if cluster is not None:
        return review_against(cluster, options, colours=sys.stdout.isatty())
    _check_words(options)
    content, old = contents_of(options, cluster)
    found = pipeline.look_offline(content, old, allowed_images=tuple(options.allow_images), stored=stored)
    if stored is not None and old is not None:
        changed = [one.body for one in old.manifests if one.ref.group_kind == CRD]
        _say_strangers(changed, stored, options.objects)
    print_report(found, options, colours=sys.stdout.isatty())
    return exit_status(found, options.fail_on)


def review_against(cluster: ClusterClient, options: argparse.Namespace, *, colours: bool) -> int:
    """Report what the bundle of `options` would do to this cluster, as who it is asked; returns the exit status."""
    _check_words(options)
    content, old = contents_of(options, cluster)
    found = pipeline.look(
        cluster,
        content,
        previous=old,
        inventory=owned(cluster, old),
        as_account=_account(options),
        allowed_images=tuple(options.allow_images),
        is_for_reader=True,
    )
    print_report(found, options, colours=colours)
    return exit_status(found, options.fail_on)


def _check_words(options: argparse.Namespace) -> None:
    if options.show_credentials and not options.diff:
        raise Usage("--show-credentials goes with --diff")


def _stored(options: argparse.Namespace) -> Stored | None:
    if options.objects is None:
        return None
    if options.kubeconfig is not None:
        raise Usage("--objects goes without --kubeconfig, which reads the objects from the cluster")
    if not options.old:
        raise Usage("--objects goes with --old: the objects are tried on CRDs that change")
    return stored_in(options.objects)


def exit_status(report: Report, fail_on: str) -> int:
    """What a report means to a script. Findings that the old bundle has as well do not count."""
    new = [one for one in report.findings if one.is_new]
    failing = [one for one in new if fail_on != NEVER and one.severity.is_at_least(Severity(fail_on))]
    worse = [one for one in failing if one.severity.rank < Severity.UNKNOWN.rank]
    if worse:
        return FINDINGS
    if any(one.severity is Severity.UNKNOWN for one in new):
        return UNKNOWN
    return FINDINGS if failing else OK


def cluster_of(options: argparse.Namespace) -> ClusterClient | None:
    if options.kubeconfig is None:
        return None
    text = _text_of(options.kubeconfig)
    return ClusterClient.connect(text, context=options.context, trusted=True)


def _account(options: argparse.Namespace) -> Identity | None:
    if not options.service_account:
        return None
    return Identity.of_service_account(options.install_namespace, options.service_account)


def scopes_of(cluster: ClusterClient | None) -> IsNamespaced:
    """Which kinds are namespaced: as the cluster says, without one as Kubernetes itself has them."""
    if cluster is None:
        return BUILT_IN.get
    return {GroupKind(one.group, one.kind): one.is_namespaced for one in cluster.resources()}.get


def contents_of(options: argparse.Namespace, cluster: ClusterClient | None) -> tuple[Content, Content | None]:
    """What the BUNDLE argument and `--old` come to. A chart is told of the cluster, and of `--old` before it."""
    is_namespaced = scopes_of(cluster)
    target = pipeline.target_of(cluster, is_upgrade=False) if is_told_of_target(options.format) else None
    old = content_of(options.old, options, is_namespaced, target) if options.old else None
    target = replace(target, is_upgrade=old is not None) if target else None
    return content_of(options.bundle, options, is_namespaced, target), old


def owned(cluster: ClusterClient, old: Content | None) -> dict[ObjectIdentity, str]:
    """What is taken for ours: the live objects that the old bundle names. Without one, everything is somebody's."""
    found: dict[ObjectIdentity, str] = {}
    for manifest in old.manifests if old else ():
        try:
            live = cluster.get(manifest.ref, metadata_only=True)
        except ClusterError:
            continue
        if live is not None:
            found[manifest.ref.identity] = uid_of(live)
    return found


def content_of(
    bundle: str, options: argparse.Namespace, is_namespaced: IsNamespaced, target: Target | None = None
) -> Content:
    """What a BUNDLE argument comes to, read by the options of `add_bundle_options` and those of the account."""
    prepared = pipeline.PrepareOptions(
        install_namespace=options.install_namespace,
        service_account=options.service_account or DEFAULT_ACCOUNT,
        format=options.format,
        config=_config_of(options),
        target=target,
    )
    return pipeline.prepare(
        [source_of(bundle)],
        options=prepared,
        egress=EVERYWHERE,
        credentials=_credentials(options),
        limits=UnpackLimits(),
        is_namespaced=is_namespaced,
    )


def _credentials(options: argparse.Namespace) -> Credentials | None:
    """Those of a docker configuration, only where one was asked for."""
    file = options.docker_config
    if options.docker_login:
        file = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
    return Credentials(docker_config=_text_of(file)) if file else None


# Whoever runs the command line asks for what they type, from where they sit: no service is led astray by it.
EVERYWHERE = EgressPolicy(
    allowed_networks=(ipaddress.ip_network("0.0.0.0/0"), ipaddress.ip_network("::/0")),
    plain_http_hosts=("*",),
    allow_mutable=True,
)


def _config_of(options: argparse.Namespace) -> dict[str, object]:
    if options.recursive and options.format != "plain":
        raise Usage(f"--recursive is for the format plain, not for {options.format}")
    return _config(options.config) | ({"recursive": True} if options.recursive else {})


def _config(file: Path | None) -> dict[str, object]:
    if file is None:
        return {}
    try:
        found = json.loads(_text_of(file))
    except json.JSONDecodeError as exc:
        raise Usage(f"{file}: no JSON ({exc})") from exc
    if not isinstance(found, dict):
        raise Usage(f"{file}: expected one JSON object")
    return found


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as exc:
        raise Usage(f"{file}: not UTF-8 text") from exc


def source_of(bundle: str) -> Source:
    """The source that a BUNDLE argument means. Raises Usage, saying what was understood, for what means none."""
    if bundle.startswith("oci://"):
        return ImageSource(bundle.removeprefix("oci://"))
    if bundle.startswith("git+"):
        return _git_source(bundle)
    if bundle.startswith(("http://", "https://")):
        url, _, checksum = bundle.partition("#")
        return HttpSource(url, checksum=checksum)
    if bundle and Path(bundle).exists():
        return LocalSource(bundle)
    if _IMAGE.fullmatch(bundle) and not bundle.startswith((".", "/")):
        return ImageSource(bundle)
    raise Usage(f"{bundle}: no such file or folder, and no reference; see `pratique review --help`")


def _git_source(bundle: str) -> Source:
    match = _GIT.fullmatch(bundle)
    if match is None:
        raise Usage(f"{bundle}: expected git+https://HOST/PATH@REF#FOLDER, REF a branch, a version tag or a commit")
    repository, ref, directory = match["repository"], match["ref"], match["directory"] or ""
    if _COMMIT.fullmatch(ref):
        return GitSource(repository, commit=ref, directory=directory)
    if ref.startswith("refs/tags/") or _VERSION.fullmatch(ref):
        return GitSource(repository, tag=ref.removeprefix("refs/tags/"), directory=directory)
    return GitSource(repository, branch=ref.removeprefix("refs/heads/"), directory=directory)


def print_report(report: Report, options: argparse.Namespace, *, colours: bool) -> None:
    """Write a report as the options of `add_review_options` say."""
    title = f"{options.old} → {options.bundle}" if options.old else options.bundle
    if options.output == "json":
        record = {
            **to_record(report),
            "containers": containers_record(container_changes(report.plan)),
            "rules": explained_record(rules_of(report.findings)),
        }
        text = json.dumps(record, indent=2, sort_keys=True) + "\n"
    elif options.output == "html":
        text = as_html(report, title=title)
    else:
        text = as_text(
            report,
            title=title,
            colours=colours,
            with_diff=options.diff,
            with_all=options.all,
            with_credentials=options.show_credentials,
        )
        text += f"\n{explained(rules_of(report.findings))}" if options.explain else ""
    sys.stdout.write(text)


# crd-diff


def _add_crd_diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", type=Path, help="a file with one or more CRDs: what runs now")
    parser.add_argument("new", metavar="NEW", type=Path, help="a file with one or more CRDs: what shall run")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.add_argument("--objects", metavar="FILE|DIR", type=Path, help="all objects stored of them; see below")
    parser.add_argument(
        "--profile", choices=("pratique", "crdify"), default="pratique", help="whose rules; default: %(default)s"
    )
    parser.add_argument("--config", metavar="FILE", type=Path, help="crdify's own configuration, for --profile crdify")


def _run_crd_diff(options: argparse.Namespace) -> int:
    if options.config and options.profile != "crdify":
        raise Usage("--config goes with --profile crdify")
    if options.objects and options.profile == "crdify":
        raise Usage("--objects goes without --profile crdify, which looks at no objects")
    found = _crd_differences(options)
    if options.output == "json":
        sys.stdout.write(json.dumps([crd_record(one) for one in found], indent=2, sort_keys=True) + "\n")
    else:
        sys.stdout.write(crds_as_text(found, colours=sys.stdout.isatty()))
    verdicts = {one.verdict for one in found}
    if Severity.UNKNOWN in verdicts and Severity.BREAKING not in verdicts:
        return UNKNOWN
    return OK if verdicts <= {Severity.SAFE} else FINDINGS


def _crd_differences(options: argparse.Namespace) -> list[CrdDifference]:
    old, new = (crds_of(_documents(file), name=str(file)) for file in (options.old, options.new))
    if options.profile == "crdify":
        given = next(iter(_documents(options.config)), None) if options.config else {}
        return crdify_differences(old, new, CrdifyConfig.of(given))
    if options.objects is None:
        return differences(old, new)
    stored = stored_in(options.objects)
    _say_strangers(old.values(), stored, options.objects)
    return differences(old, new, stored.objects, stored.kinds)


def _say_strangers(crds: Iterable[JsonObject], stored: Stored, place: Path) -> None:
    for kind, count in strangers(crds, stored.objects).items():
        sys.stderr.write(f"pratique: {place}: {count:,} {visible(kind)} passed over: no CRD here is theirs\n")


def _documents(file: Path) -> list[object]:
    return list(load_all(file.read_bytes(), name=str(file)))


COMMANDS: tuple[ReviewCommand, ...] = (
    ReviewCommand(
        "review",
        "what a bundle would do: objects, permissions, CRDs, pods, webhooks, images",
        _add_review,
        _run_review,
        _REVIEW_EPILOG,
        unanswered.review,
    ),
    ReviewCommand(
        "crd-diff",
        "whether CRDs still accept what is stored and written: what their schemas accept is compared",
        _add_crd_diff,
        _run_crd_diff,
        _CRD_EPILOG,
        unanswered.crd_diff,
    ),
)
