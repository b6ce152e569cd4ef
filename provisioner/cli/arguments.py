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
    a version tag (v1.2.3), refs/tags/TAG or a commit; #FOLDER may be left out
  an archive by http: https://HOST/PATH.tar.gz#sha256:...

private registries
  are asked without credentials, unless --docker-config or --docker-login says
  where to take them from. Each entry of `auths` goes to the registry that it
  is written for. Programs that keep passwords (credsStore, credHelpers) are
  not run.
"""
REVIEW_EPILOG = f"""\
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
CRD_EPILOG = """\
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


def add_review(parser: argparse.ArgumentParser) -> None:
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
    add_old(parser, "what runs now: only what is new beside it counts")


def add_old(parser: argparse.ArgumentParser, words: str) -> None:
    """The bundle that runs now. Without a format of its own, it is read as what it is."""
    parser.add_argument("--old", metavar="BUNDLE", help=words)
    parser.add_argument(
        "--old-config",
        metavar="FILE",
        type=Path,
        help="options of the format for --old; default: those of --config, where both have one format",
    )


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
    parser.add_argument(
        "--format",
        choices=format_names(),
        help="default: helm or registry-v1 for a folder that holds a chart or an operator bundle, else plain",
    )
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


def add_crd_diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", type=Path, help="a file with one or more CRDs: what runs now")
    parser.add_argument("new", metavar="NEW", type=Path, help="a file with one or more CRDs: what shall run")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="default: %(default)s")
    parser.add_argument("--objects", metavar="FILE|DIR", type=Path, help="all objects stored of them; see below")


class Usage(Exception):
    """What was typed cannot be meant; the message says what was expected."""
