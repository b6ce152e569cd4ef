"""Write or check every generated page: `python -m docs.generators [--check]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pages() -> Mapping[str, Callable[[], str]]:
    """Each generated page, by its path from the root of the repository. Needs Django."""
    from docs.generators import (  # noqa: PLC0415 - once Django runs
        commands,
        conditions,
        crds,
        decisions,
        errors,
        pictures,
        rest,
        rule_tables,
        settings,
    )
    from provisioner.review.frame import CHECKS  # noqa: PLC0415 - once Django runs
    from provisioner.review.judged import harmless, unjudged_fields  # noqa: PLC0415 - once Django runs
    from provisioner.review.rules import index  # noqa: PLC0415 - once Django runs

    return {
        "docs/architecture/layers.md": pictures.layers,
        "docs/architecture/states.md": pictures.states,
        "docs/decisions/README.md": decisions.page,
        "docs/reference/bundledeployment.md": crds.bundledeployment,
        "docs/reference/catalog.md": crds.catalog,
        "docs/reference/approvalrule.md": crds.approvalrule,
        "docs/reference/changewindow.md": crds.changewindow,
        "docs/reference/findingexception.md": crds.findingexception,
        "docs/reference/deputy.md": crds.deputy,
        "docs/reference/externalcheck.md": crds.externalcheck,
        "docs/reference/approvalpolicy.md": crds.approvalpolicy,
        "docs/reference/bundledeploymentrequest.md": crds.bundledeploymentrequest,
        "docs/reference/bundledeploymentreview.md": crds.bundledeploymentreview,
        "docs/reference/conditions.md": conditions.page,
        "docs/reference/errors.md": errors.page,
        "docs/reference/kubectl-pratique.md": commands.kubectl_pratique,
        "docs/reference/pratique-manage.md": commands.pratique_manage,
        "docs/reference/pratique.md": commands.pratique,
        "docs/reference/rest.md": rest.page,
        "docs/reference/settings.md": settings.page,
        "docs/rules/README.md": index.page,
        "docs/rules/annotations.md": rule_tables.known_annotations,
        "docs/rules/control-plane.md": rule_tables.control_plane,
        "docs/rules/harmless.md": lambda: harmless.page(
            unjudged_fields.TABLE,
            sorted((claim for check in CHECKS for claim in check.claims), key=lambda claim: claim.rule),
        ),
    }


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.generators", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if a page is not current")
    options = parser.parse_args(arguments)
    _start_django()
    stale = []
    for name, text_of in pages().items():
        file, text = root / name, text_of()
        if file.is_file() and file.read_text("utf-8") == text:
            continue
        stale.append(name)
        if not options.check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    for name in stale:
        sys.stderr.write(
            f"{name} is not current. Run `make docs` and commit the result.\n" if options.check else f"wrote {name}\n"
        )
    return 1 if stale and options.check else 0


def _start_django() -> None:
    """With settings that need no secret: nothing is served, and no record is read."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
    os.environ.setdefault("PRATIQUE_DEBUG", "true")
    import django  # noqa: PLC0415 - after the settings are named

    django.setup()


if __name__ == "__main__":
    sys.exit(main())
