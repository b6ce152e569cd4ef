"""The child process for a chart that looks things up: it answers the lookups itself, and renders no other chart."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from provisioner.chart_engine.process import main
from provisioner.render.helm.lookups import answering


def answer_lookups(job: dict[str, Any]) -> AbstractContextManager[str]:
    """The address of a server in this process that answers the lookups of a job."""
    return answering(job["lookups"], job["api_versions"], is_open=job["is_open"])


if __name__ == "__main__":
    main(answer_lookups)
