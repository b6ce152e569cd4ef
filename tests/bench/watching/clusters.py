"""Registers a cluster for each kubeconfig of a folder, named as the file, for benches of the watch.

python -m tests.bench.watching.clusters FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
import yaml

from tests.support.folders import ROOT


def main(folder: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
    django.setup()
    from approvals.audit import Actor
    from approvals.services import register_cluster  # the apps are there only now
    from provisioner.cluster.client.api import ClusterClient as Api

    definitions = [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "deploy/crds").glob("*.yaml"))]
    for path in sorted(folder.glob("*.yaml")):
        text = path.read_text()
        api = Api.connect(text, context="admin", timeout_seconds=60)
        for one in definitions:
            api.apply(one, field_manager="bench", force=True)
        register_cluster(name=path.stem, kubeconfig=text, context="admin", by=Actor("bench", "shell"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
