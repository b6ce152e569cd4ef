"""The arguments of `pratique review` and `pratique crd-diff`, those that other commands share, and their help."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from provisioner.render import format_names
from provisioner.values import Severity

NEVER = "never"
DEFAULT_NAMESPACE = "default"


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
    a version tag (v1.2.3), refs/tags/TAG or a commit; #FOLDER is optional
  an archive by http: https://HOST/PATH.tar.gz#sha256:...

private registries
  Registries are read without credentials, unless --docker-config or
  --docker-login is given. Each entry of `auths` is used only for its registry.
  Credential helpers (credsStore, credHelpers) are not run.
"""
REVIEW_EPILOG = f"""\
{BUNDLE_EPILOG}
existing objects
  With --kubeconfig, objects that belong to Helm, kubectl, Argo CD or others
  are planned as adopted. One line names each current owner and what a request
  needs to adopt the object. With --old, they count as owned by this bundle.

stored objects
  Comparing two schemas shows which values would be refused or pruned, not
  whether such values are stored. A finding that depends on stored values says
  "breaks only if" (in JSON, certainty: depends-on-objects). --kubeconfig reads
  the objects of the CRDs that change. Without a cluster, --objects names a file
  or folder with all stored objects, as `kubectl get KIND -A -o yaml` prints
  them; an empty list means that there are none. The finding then names the
  objects or gets a lower severity. If no objects are stored, one line says what
  changes for clients of the CRD. Kinds that are missing stay undecided.

exit status
  0  no finding at or above --fail-on
  1  at least one finding at or above --fail-on
  2  an error, or an unknown finding and nothing worse; with -o json an error is
     also printed as a report with one unknown finding
"""
CRD_EPILOG = """\
stored objects
  --objects names a file with all stored objects, as `kubectl get KIND -A -o
  yaml` prints them: lists or single objects, of one or more kinds. In a folder,
  every .yaml, .yml and .json file is read. They decide what two schemas leave
  open. A change that refuses or prunes a stored object is breaking. If all
  objects pass, or none is stored, the change is still dangerous, because writes
  by clients may be refused. Kinds that are missing stay undecided, unless the
  file has an empty list of that kind, or the empty list that kubectl prints.

exit status
  0  every CRD is safe
  1  a CRD is dangerous or breaking
  2  an error, or a CRD is unknown and none is breaking; with -o json an error
     is also printed as an element: an unknown CRD without a name
"""


def add_review(parser: argparse.ArgumentParser) -> None:
    add_review_bundles(parser)
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="compare with this cluster; it is not changed")
    parser.add_argument(
        "--objects", metavar="FILE|DIR", type=Path, help="all stored objects of the CRDs that change; see below"
    )
    parser.add_argument("--context", default="", help="context of the kubeconfig")
    add_review_options(parser)


def add_review_bundles(parser: argparse.ArgumentParser) -> None:
    """What is reviewed."""
    parser.add_argument("bundle", metavar="BUNDLE", help="the new bundle; see below")
    add_old(parser, "the current bundle; only findings that are new compared with it count")


def add_old(parser: argparse.ArgumentParser, words: str) -> None:
    """The bundle that runs now. Without a format of its own, it is read as what it is."""
    parser.add_argument("--old", metavar="BUNDLE", help=words)
    parser.add_argument(
        "--old-config",
        metavar="FILE",
        type=Path,
        help="format options for --old; default: those of --config, if both bundles have the same format",
    )


def add_review_options(parser: argparse.ArgumentParser) -> None:
    """How it is reviewed and told, whichever cluster is asked."""
    parser.add_argument("--install-namespace", metavar="NS", default=DEFAULT_NAMESPACE, help="default: %(default)s")
    parser.add_argument(
        "--service-account", metavar="NAME", default="", help="plan as this ServiceAccount in the install namespace"
    )
    parser.add_argument(
        "--allow-images",
        metavar="PLACE",
        action="append",
        default=[],
        help="allowed registry or repository prefix for images; can be repeated",
    )
    add_bundle_options(parser)
    parser.add_argument("-o", "--output", choices=("text", "json", "html"), default="text", help="default: %(default)s")
    parser.add_argument(
        "--all", action="store_true", help="text output: also show safe and unchanged findings, with every location"
    )
    parser.add_argument(
        "--diff",
        action="store_true",
        help="text output: also show changed lines; values that look like credentials are hidden",
    )
    parser.add_argument(
        "--show-credentials",
        action="store_true",
        help="with --diff: show values that look like credentials; values of Secrets stay hidden",
    )
    parser.add_argument("--explain", action="store_true", help="text output: also explain each rule that applies")
    parser.add_argument(
        "--fail-on",
        choices=[NEVER, *map(str, Severity)],
        default=str(Severity.DANGEROUS),
        metavar="SEVERITY",
        help=f"lowest severity that gives exit status 1: {', '.join(Severity)} or {NEVER}; default: %(default)s",
    )


def add_bundle_options(parser: argparse.ArgumentParser) -> None:
    """The options by which `content_of` reads a bundle."""
    parser.add_argument(
        "--format",
        choices=format_names(),
        help="default: helm for a folder or archive with a chart, kustomize for one with a kustomization, registry-v1"
        " for one with an operator bundle, else plain",
    )
    parser.add_argument("--recursive", action="store_true", help="format plain: also read manifests in subfolders")
    parser.add_argument("--config", metavar="FILE", type=Path, help="JSON file with format options")
    login = parser.add_mutually_exclusive_group()
    login.add_argument(
        "--docker-config", metavar="FILE", type=Path, help="use the registry credentials in `auths` of this config.json"
    )
    login.add_argument(
        "--docker-login",
        action="store_true",
        help="use the registry credentials of `docker login`: $DOCKER_CONFIG/config.json or ~/.docker/config.json",
    )


def add_crd_diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", type=Path, help="file with the current CRDs, one or more")
    parser.add_argument("new", metavar="NEW", type=Path, help="file with the new CRDs, one or more")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.add_argument("--objects", metavar="FILE|DIR", type=Path, help="all stored objects of these CRDs; see below")


class Usage(Exception):
    """What was typed cannot be meant; the message says what was expected."""
