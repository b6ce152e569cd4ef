"""What is written as YAML is read back as the same, by PyYAML (1.1), by our reader and by the real kubectl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provisioner.render import load_all, write, write_quoted
from tests.provisioner.render.kubectl import read_by_kubectl

# Each is something else to one reader or another, if it stands there without quotes.
AMBIGUOUS = [
    *("1e3", "1E3", "1e+3", "12e03", "+.5e1", "1.", ".5", "1_000", "0x1f", "0b1", "0o17", "+0o7", "017", "08", "1:30"),
    *("190:20:30", "2001-01-01", "2001-12-14t21:59:43.10-05:00", ".inf", "-.INF", ".nan", "-0", "0b-1", "1" * 30),
    *(
        "yes",
        "No",
        "on",
        "y",
        "Y",
        "n",
        "true",
        "FALSE",
        "null",
        "Null",
        "~",
        "",
        "=",
        "<<",
        "---",
        "...",
        "- a",
        "? a",
    ),
    *("a: b", "a #b", "#a", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "'", '"', "\\", "{a: b}", "[a]", ",", " a "),
    *("a\nb", "a\tb", "\n", "a\n---\nkind: ClusterRoleBinding", "\x00", "\x07", "\x1b", "\x7f", "\x85", "\xa0", "é"),
    *("a\u2028b", "a\u2029b", "\ufeffa", "\ufffe", "\u202eadmin", "аdmin", "😀", "a b " * 60),
]
TEXT = st.sampled_from(AMBIGUOUS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
# As YAML's own words are made, so that what looks like a number comes up often.
NUMBERLIKE = st.text("0123456789+-_.:eExXoObBinfaty~ ", max_size=12)
VALUES = st.recursive(
    TEXT | NUMBERLIKE | st.integers(-(2**62), 2**62) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | NUMBERLIKE, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(TEXT | NUMBERLIKE, max_size=6))
def test_names_are_read_back_as_they_are(names: list[str]) -> None:
    objects = [
        {"kind": "ClusterRole", "rules": [{"resourceNames": names}]},
        {"subjects": [{"name": one} for one in names]},
    ]
    text = write_quoted(objects)
    assert [*yaml.safe_load_all(text)] == objects
    assert load_all(text, name="x") == objects
    assert text.isascii()


@given(st.dictionaries(TEXT | NUMBERLIKE, VALUES, min_size=1, max_size=5))
def test_a_map_is_read_back_as_it_is(value: dict[str, Any]) -> None:
    text = write(value)
    assert load_all(text, name="x") == [value]
    assert yaml.safe_load(text) == value


def test_what_nobody_takes_for_something_else_stands_without_quotes() -> None:
    assert (
        write({"image": "nginx:1.28", "replicas": 2, "on": "5.0.0"}) == 'image: nginx:1.28\nreplicas: 2\n"on": 5.0.0\n'
    )
    assert write_quoted([{"kind": "Role", "on": ["crane"]}]) == '---\nkind: "Role"\n"on":\n- "crane"\n'


def by_kubectl(kubectl: Path, names: list[str]) -> list[str]:
    """What it reads as `rules[0].resourceNames` of a role of these names."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "x"},
        "rules": [{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": names}],
    }
    (found,) = read_by_kubectl(kubectl, write_quoted([role]))
    read: list[str] = found["rules"][0]["resourceNames"]
    return read


@pytest.fixture(scope="module")
def reader(kubectl: Path) -> Path:
    return kubectl


def test_S31_kubectl_reads_each_ambiguous_name_as_it_is(reader: Path) -> None:
    assert by_kubectl(reader, AMBIGUOUS) == AMBIGUOUS


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXT | NUMBERLIKE, min_size=20, max_size=80))
def test_S31_kubectl_reads_any_name_as_it_is(reader: Path, names: list[str]) -> None:
    assert by_kubectl(reader, names) == names


def test_kubectl_reads_what_a_form_shows_as_it_is(reader: Path) -> None:
    values = {f"k{number}": text for number, text in enumerate(AMBIGUOUS)}
    shown = write({"apiVersion": "v1", "kind": "Odd", "metadata": {"name": "x"}, "spec": values})
    assert read_by_kubectl(reader, shown)[0]["spec"] == values
