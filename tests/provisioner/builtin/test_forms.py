"""How Kubernetes writes things: quantities, names, schedules."""

from __future__ import annotations

from decimal import Decimal

import pytest

from provisioner.builtin.forms import alike, is_cidr, is_config_key, is_port_name, is_qualified_name, quantity
from provisioner.builtin.workloads import is_time_zone, problem_of_schedule


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", 1),
        ("1Gi", 2**30),
        ("500m", Decimal("0.5")),
        ("1e3", 1000),
        (".5", Decimal("0.5")),
        (2, 2),
        ("-1", -1),
        ("1E", 10**18),
    ],
)
def test_a_quantity_stands_for_an_amount(text: object, amount: object) -> None:
    assert quantity(text) == amount


@pytest.mark.parametrize("text", ["", "1GB", "Gi", "1 Gi", "1.2.3", "1ki", True, None, [], "0x1"])
def test_other_texts_are_none(text: object) -> None:
    assert quantity(text) is None


def test_amounts_in_other_units_are_the_same_and_other_texts_are_not() -> None:
    assert alike({"requests": {"storage": "1Gi"}}, {"requests": {"storage": "1024Mi"}})
    assert alike([1], ["1"])
    assert not alike({"a": "b"}, {"a": "c"})
    assert not alike({"a": "1"}, {"b": "1"})


@pytest.mark.parametrize(
    "text", ["*/5 1-5/2 ? JAN-mar mon,FRI", "@daily", "@every 1h30m", "0 0 31 2 *", "1,,2 * * * *", "5/10 * * * *"]
)
def test_a_schedule_is_read_as_the_controller_reads_it(text: str) -> None:
    assert problem_of_schedule(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "61 * * * *",
        "* * * *",
        "0 0 0 * * *",
        "* 24 * * *",
        "0 0 0 * *",
        "0 0 * 13 *",
        "0 0 * * 7",
        "*/0 * * * *",
        "5-1 * * * *",
        "a * * * *",
        "@dayly",
        "@every",
        "@every now",
        "0 0 L * *",
        "TZ=UTC 0 0 * * *",
        "1-2-3 * * * *",
        "1/2/3 * * * *",
        "-1 * * * *",
    ],
)
def test_what_is_no_schedule_has_a_reason(text: str) -> None:
    assert problem_of_schedule(text)


def test_time_zones_are_those_of_the_database() -> None:
    assert is_time_zone("Europe/Paris")
    assert [is_time_zone(one) for one in ("Europe/Parys", "", "Local", "/etc/passwd", "../UTC")] == [False] * 5


def test_names() -> None:
    assert [is_port_name(one) for one in ("http", "a-b", "8080", "a--b", "a-name-that-is-too-long")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [is_qualified_name(one) for one in ("a", "a.b/c_D", "/a", "A/b", "a b", "a/b/c")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert [is_config_key(one) for one in ("a.b_c-D", "..a", ".", "a/b")] == [True, False, False, False]
    assert [is_cidr(one) for one in ("10.0.0.0/8", "fd00::/8", "10.0.0.1", "10.0.0.0/33")] == [True, True, False, False]
