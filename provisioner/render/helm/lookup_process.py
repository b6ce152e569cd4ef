"""The child process for a chart that looks things up: it answers the lookups itself, and renders no other chart."""

from __future__ import annotations

from provisioner.chart_engine.process import main
from provisioner.render.helm.lookups import answering

if __name__ == "__main__":
    main(answering)
