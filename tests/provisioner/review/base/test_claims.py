"""Which fields are claimed."""

import pytest

from provisioner.review.base.claims import EVERY_KIND, PODS, Claim, Claims, parts_of
from provisioner.values import GroupKind

DEPLOYMENT = GroupKind("apps", "Deployment")
CRON_JOB = GroupKind("batch", "CronJob")
SERVICE = GroupKind("", "Service")
CLAIMS = Claims(
    (
        Claim("PORT", frozenset({SERVICE}), ("spec.ports.*.nodePort", "spec.selector")),
        Claim("POD", PODS, ("{pod}.containers.*.image", "{pod-meta}.annotations.[prometheus.io/*]")),
        Claim("ALL", EVERY_KIND, ("metadata.labels.[helm.sh/chart]",)),
        Claim("GROUP", frozenset({GroupKind("shop.example.com", "*")}), ("spec",)),
    )
)


@pytest.mark.parametrize(
    ("kind", "path", "rule"),
    [
        pytest.param(SERVICE, ("spec", "ports", 3, "nodePort"), "PORT", id="an item"),
        pytest.param(SERVICE, ("spec", "selector", "app"), "PORT", id="what is below"),
        pytest.param(SERVICE, ("spec", "ports"), "", id="what is above"),
        pytest.param(SERVICE, ("spec", "ports", 3, "port"), "", id="what is beside"),
        pytest.param(DEPLOYMENT, ("spec", "selector"), "", id="of another kind"),
        pytest.param(DEPLOYMENT, ("spec", "template", "spec", "containers", 0, "image"), "POD", id="of pods"),
        pytest.param(
            CRON_JOB,
            ("spec", "jobTemplate", "spec", "template", "metadata", "annotations", "prometheus.io/port"),
            "POD",
            id="metadata of pods, and keys that begin alike",
        ),
        pytest.param(SERVICE, ("spec", "containers", 0, "image"), "", id="of pods where there are none"),
        pytest.param(GroupKind("x.io", "Y"), ("metadata", "labels", "helm.sh/chart"), "ALL", id="of every kind"),
        pytest.param(GroupKind("shop.example.com", "Order"), ("spec", "size"), "GROUP", id="of every kind of a group"),
    ],
)
def test_a_claim_holds_for_its_fields_of_its_kinds(kind: GroupKind, path: tuple[str | int, ...], rule: str) -> None:
    assert CLAIMS.judge_of(kind, path) == rule


def test_a_kind_is_known_where_a_claim_names_it_or_its_group() -> None:
    known = [
        one for one in (SERVICE, GroupKind("shop.example.com", "Order"), GroupKind("x.io", "Y")) if CLAIMS.knows(one)
    ]

    assert known == [SERVICE, GroupKind("shop.example.com", "Order")]


@pytest.mark.parametrize("path", ["", "spec.[helm.sh", "spec]", "."])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="no path"):
        parts_of(path)
