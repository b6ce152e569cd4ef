"""A chart on either API server."""

from __future__ import annotations

import pytest

from tests.provisioner.cluster.apply.hooks.charts import Chart
from tests.support.provisioner.cluster_scene import Scene


@pytest.fixture
def chart(scene: Scene) -> Chart:
    return Chart(scene)
