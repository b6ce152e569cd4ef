"""The order of a set on its page."""

from __future__ import annotations

import re

from approvals.models import Rollout
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.approvals.rollouts import asked, order, set_state
from tests.support.approvals.sets import member


def test_a_set_is_made_of_chosen_deployments(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "update")
    for name in ("quay", "dock", "other"):
        asked(env.cluster, name, env.rita)
    ada = browse(env.ada)
    assert "prod/quay" in text_of(ada.get("/new-set"))
    form = {"name": "spring", "members": ["prod/quay", "prod/dock"], "rings": "[{name: all}]", "on_failure": "Stop"}
    wrong = ada.post("/new-set", {**form, "rings": "[{name: all, soak: 3}]"})
    assert wrong.status_code == 422 and "does not know" in text_of(wrong)
    assert ada.post("/new-set", form)["Location"] == "/sets/spring"
    page = text_of(ada.get("/sets/spring"))
    for words in ("Ring", "0 of 2 members healthy", "prod/quay", "in progress", "Made by ada"):
        assert words in page
    # Whoever may not read the cluster sees none of it.
    bert = browse(env.bert)
    assert bert.get("/sets/spring").status_code == 404 and "prod/quay" not in text_of(bert.get("/new-set"))


def test_members_of_a_label_are_ticked_for_its_order(env: World, browse: Browse) -> None:
    member(env.cluster, "a", env.rita)
    asked(env.cluster, "quay", env.rita)
    page = browse(env.ada).get("/new-set?name=spring").content.decode()
    assert page.count(" checked") == 1 and 'value="spring"' in page


def test_what_follows_a_ring_is_approved_on_the_page(env: World, browse: Browse) -> None:
    env.kubernetes.allow("rita", "update")
    first, second = asked(env.cluster, "quay", env.rita), asked(env.cluster, "dock", env.rita)
    row = order(env.rita, first, second, rings=[{"name": "canary", "requiresApproval": True}])
    # As if it were on another cluster: the page goes by the rows.
    Rollout.objects.filter(pk=row.pk).update(rings=[*row.rings, {"name": "rest"}])
    row.members.filter(deployment=second.deployment).update(ring=1)
    ada, approve = browse(env.ada), {"do": "approve", "ring": "canary", "reason": "seen", "version": ""}
    assert "Approve the ring after canary" not in text_of(ada.get("/sets/spring"))
    set_state(first, "applied", health="Current")
    shown = ada.get("/sets/spring")
    assert "Approve the ring after canary" in text_of(shown)
    assert ada.post("/sets/spring/order", approve).status_code == 412
    (approve["version"],) = re.findall(r'name="version" value="([^"]+)"', shown.content.decode())
    assert ada.post("/sets/spring/order", approve)["Location"] == "/sets/spring"
    assert "complete" in text_of(ada.get("/sets/spring"))
    assert ada.post("/sets/spring/order", {"do": "explode", "reason": "x"}).status_code == 422
    assert ada.post("/sets/spring/order", {"do": "end", "reason": "done"}).status_code == 302
    assert Rollout.objects.get().ended_by == "ada"
