"""What `pratique review` and `pratique crd-diff` do.

Exit status: 0 nothing at or above --fail-on; 1 there is; 2 could not find out (also wrong usage). A finding of severity
unknown gives 2, unless something worse (critical, breaking) gives 1. With --old only what is new counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from provisioner import pipeline
from provisioner.cli import json_output
from provisioner.cli.arguments import CRD_EPILOG, NEVER, REVIEW_EPILOG, ReviewCommand, Usage, add_crd_diff, add_review
from provisioner.cli.inputs import read_contents, read_stored_objects, read_text
from provisioner.cli.json_output import as_json
from provisioner.errors import ClusterError
from provisioner.escaping import visible
from provisioner.json_values import uid_of
from provisioner.render import load_all
from provisioner.review.base.facts import Stored
from provisioner.review.base.record import to_record
from provisioner.review.crd_diff import crds_of, differences, strangers
from provisioner.review.crd_diff import to_record as crd_record
from provisioner.review.crds.live_scene import CRD
from provisioner.review.output.entries import entries_record
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text, crds_as_text
from provisioner.review.rules.explanations import as_text as explained
from provisioner.review.rules.explanations import rules_of
from provisioner.review.rules.explanations import to_record as explained_record
from provisioner.review.workloads.workload_changes import running_record, workload_changes
from provisioner.values import Content, Identity, JsonObject, ObjectIdentity, Report, Severity

if TYPE_CHECKING:
    from provisioner.cluster.client.api import ClusterClient

OK, FINDINGS, UNKNOWN = 0, 1, 2


def _run_review(options: argparse.Namespace) -> int:
    if options.service_account and options.kubeconfig is None:
        raise Usage("--service-account needs a cluster to ask: name it with --kubeconfig")
    stored = None
    if options.objects is not None:
        if options.kubeconfig is not None:
            raise Usage("--objects goes without --kubeconfig, which reads the objects from the cluster")
        if not options.old:
            raise Usage("--objects goes with --old: the objects are tried on CRDs that change")
        stored = read_stored_objects(options.objects)
    cluster = cluster_of(options)
    if cluster is not None:
        return review_against(cluster, options, colours=sys.stdout.isatty())
    _check_words(options)
    content, old = read_contents(options, cluster)
    found = pipeline.look_offline(content, old, allowed_images=tuple(options.allow_images), stored=stored)
    if stored is not None and old is not None:
        changed = [manifest.body for manifest in old.manifests if manifest.ref.group_kind == CRD]
        _say_strangers(changed, stored, options.objects)
    print_report(found, options, colours=sys.stdout.isatty())
    return exit_status(found, options.fail_on)


def write(text: str) -> None:
    sys.stdout.write(text)


def review_against(
    cluster: ClusterClient, options: argparse.Namespace, *, colours: bool, tell: Callable[[str], None] = write
) -> int:
    """Report what the bundle of `options` would do to this cluster, as who it is asked; returns the exit status.

    `tell` is where the report goes, such as through a pager.
    """
    _check_words(options)
    content, old = read_contents(options, cluster)
    account = options.service_account
    found = pipeline.look(
        cluster,
        content,
        previous=old,
        inventory=owned(cluster, old),
        as_account=Identity.of_service_account(options.install_namespace, account) if account else None,
        allowed_images=tuple(options.allow_images),
        is_for_reader=True,
    )
    print_report(found, options, colours=colours, tell=tell)
    return exit_status(found, options.fail_on)


def _check_words(options: argparse.Namespace) -> None:
    if options.show_credentials and not options.diff:
        raise Usage("--show-credentials goes with --diff")


def exit_status(report: Report, fail_on: str) -> int:
    """What a report means to a script. Findings that the old bundle has as well do not count."""
    new = [finding for finding in report.findings if finding.is_new]
    failing = [finding for finding in new if fail_on != NEVER and finding.severity.is_at_least(Severity(fail_on))]
    worse = [finding for finding in failing if finding.severity.rank < Severity.UNKNOWN.rank]
    if worse:
        return FINDINGS
    if any(finding.severity is Severity.UNKNOWN for finding in new):
        return UNKNOWN
    return FINDINGS if failing else OK


def cluster_of(options: argparse.Namespace) -> ClusterClient | None:
    if options.kubeconfig is None:
        return None
    from provisioner.cluster.client.api import ClusterClient  # noqa: PLC0415 - a review of files never loads it

    text = read_text(options.kubeconfig)
    return ClusterClient.connect(text, context=options.context, trusted=True)


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


def print_report(
    report: Report, options: argparse.Namespace, *, colours: bool, tell: Callable[[str], None] = write
) -> None:
    """Tell a report as the options of `add_review_options` say."""
    title = f"{options.old} → {options.bundle}" if options.old else options.bundle
    if options.output == "json":
        record = {
            **to_record(report),
            "entries": entries_record(report.public),
            **running_record(workload_changes(report.plan)),
            "rules": explained_record(rules_of(report.findings)),
        }
        text = as_json(record)
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
    tell(text)


def _run_crd_diff(options: argparse.Namespace) -> int:
    old, new = (
        crds_of(list(load_all(file.read_bytes(), name=str(file))), name=str(file))
        for file in (options.old, options.new)
    )
    if options.objects is None:
        found = differences(old, new)
    else:
        stored = read_stored_objects(options.objects)
        _say_strangers(old.values(), stored, options.objects)
        found = differences(old, new, stored.objects, stored.kinds)
    if options.output == "json":
        sys.stdout.write(as_json([crd_record(difference) for difference in found]))
    else:
        sys.stdout.write(crds_as_text(found, colours=sys.stdout.isatty()))
    verdicts = {difference.verdict for difference in found}
    if Severity.UNKNOWN in verdicts and Severity.BREAKING not in verdicts:
        return UNKNOWN
    return OK if verdicts <= {Severity.SAFE} else FINDINGS


def _say_strangers(crds: Iterable[JsonObject], stored: Stored, place: Path) -> None:
    for kind, count in strangers(crds, stored.objects).items():
        sys.stderr.write(f"pratique: {place}: {count:,} {visible(kind)} passed over: no CRD here is theirs\n")


COMMANDS: tuple[ReviewCommand, ...] = (
    ReviewCommand(
        "review",
        "show what a bundle would change: objects, rights, CRDs, pods, webhooks, images",
        add_review,
        _run_review,
        REVIEW_EPILOG,
        json_output.unanswered_review,
    ),
    ReviewCommand(
        "crd-diff",
        "check whether new CRDs still accept stored objects and what clients write",
        add_crd_diff,
        _run_crd_diff,
        CRD_EPILOG,
        json_output.unanswered_crd_diff,
    ),
)
