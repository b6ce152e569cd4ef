"""What is said of built-in objects without a cluster, against the real API server: nothing that it refuses is safe."""

from __future__ import annotations

import time
import uuid
from collections import Counter

import pytest

from provisioner.cluster.client.api import ClusterClient
from provisioner.values import ObjectRef
from tests.provisioner.builtin.differential import Answer, changes, compared
from tests.support.folders import CORPUS
from tests.support.kubernetes.live import wait_until
from tests.support.patience import scaled

pytestmark = [pytest.mark.controlplane, pytest.mark.corpus, pytest.mark.thorough]
SEED, CHANGES, FEWEST, FEWEST_REFUSED = 19, 1400, 1250, 550
MOST_SECONDS = 90.0


def test_nothing_that_the_real_server_refuses_is_safe_here_and_little_that_it_takes_is_not(api: ClusterClient) -> None:
    assert CORPUS.is_dir()
    namespace = f"builtin-{uuid.uuid4().hex[:8]}"
    tried = changes(namespace, SEED, CHANGES)
    began = time.process_time()  # our part of it: others on the machine do not count
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, field_manager="tests")
    account = ObjectRef("", "v1", "ServiceAccount", namespace, "default")
    wait_until(lambda: api.get(account) is not None, "the account of the namespace")
    try:
        found = compared(api, tried)
    finally:
        api.delete(ObjectRef("", "v1", "Namespace", "", namespace))
    assert time.process_time() - began < scaled(MOST_SECONDS)
    counted = Counter((one.real, one.ours) for one in found)
    refused = sum(count for (real, _), count in counted.items() if real is Answer.REFUSED)
    accepted = len(found) - refused
    assert len(found) >= FEWEST
    assert refused >= FEWEST_REFUSED
    missed = [
        (one.change.name, one.real_words) for one in found if (one.real, one.ours) == (Answer.REFUSED, Answer.ACCEPTED)
    ]
    assert missed == []
    false = [
        (one.change.name, one.our_words) for one in found if (one.real, one.ours) == (Answer.ACCEPTED, Answer.REFUSED)
    ]
    assert len(false) <= 0.02 * accepted, false
    assert counted[Answer.ACCEPTED, Answer.UNKNOWN] <= 0.05 * accepted
