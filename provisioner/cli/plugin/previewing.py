"""`preview`: what content would do to the cluster of the caller's kubeconfig, with the caller's own rights."""

from __future__ import annotations

import argparse

from provisioner.cli.arguments import BUNDLE_EPILOG, add_review_bundles, add_review_options
from provisioner.cli.plugin.reading import add_cluster, cluster_of
from provisioner.cli.plugin.terminal import is_coloured, page
from provisioner.cli.review import review_against
from provisioner.cli.usage import Usage

HELP = "what a bundle would do to your cluster, before anybody asks for it"
EPILOG = f"""\
The report is made on this machine. The API server is asked as you: it tries each
object as a dry-run, and changes nothing. The report says what you may not read
or do there. --service-account tries it as the account that would install it, for
which you need the right to impersonate that account. No request is made, and
Pratique's service is not asked.

{BUNDLE_EPILOG}
exit status
  0  nothing at or above --fail-on
  1  there is
  2  could not find out: an error, or an unknown finding and nothing worse
"""


def add(parser: argparse.ArgumentParser) -> None:
    add_review_bundles(parser)
    add_cluster(parser)
    add_review_options(parser)


def preview(options: argparse.Namespace) -> int:
    if options.service_account and options.acting_as:
        raise Usage("--service-account and --as both say whose rights are tried: give one of them")
    return review_against(cluster_of(options), options, colours=is_coloured(options), tell=page)
