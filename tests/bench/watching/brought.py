"""A cluster whose authors are known, registered for benches of what one account brings.

python -m tests.bench.watching.brought KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
import yaml

from tests.support.folders import ROOT

ADMISSION = ("author-stamp.yaml", "authors.yaml", "finalizer.yaml", "reviews.yaml")
PEOPLE = ("mallory", "carol")


def main(kubeconfig: Path, namespace: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
    django.setup()
    from approvals.audit import Actor
    from approvals.services import register_cluster  # the apps are there only now
    from tests.support.journeys import deployed_site

    api = deployed_site.Api.connect(kubeconfig.read_text(), context="admin", timeout_seconds=60)
    deployed_site.prepare(api, namespace)
    for who in (f"system:serviceaccount:{namespace}:controller", *PEOPLE):
        name = f"{namespace}-{who.rpartition(':')[2]}"
        api.apply(deployed_site.binding(name, "cluster-admin", deployed_site.user_subject(who)), field_manager="bench")
    for file in ADMISSION:
        for obj in yaml.safe_load_all((ROOT / "deploy/admission" / file).read_text()):
            api.apply(obj, field_manager="bench", force=True)
    register_cluster(name="one", kubeconfig=kubeconfig.read_text(), context="pratique", by=Actor("bench", "shell"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
