"""Which lines of a comparison are kept: of what changes and of what is new, within bounds."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.steps.catalogs import comparison_record as room
from approvals.steps.catalogs.comparison_record import ChangedLines, changed_lines
from provisioner import pipeline
from provisioner.errors import OutOfTime
from provisioner.values import Action, Content, Manifest, ObjectRef, PlannedAction


def planned(action: Action, before: dict[str, Any] | None, after: dict[str, Any] | None) -> PlannedAction:
    return PlannedAction(ObjectRef("", "v1", "ConfigMap", "harbour", "papers"), action, before=before, after=after)


def config(**data: str) -> dict[str, Any]:
    about = {"name": "papers", "namespace": "harbour"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": data}


def found(*actions: PlannedAction) -> ChangedLines:
    return changed_lines(actions, begin=lambda: None)


def texts(lines: ChangedLines, position: str) -> list[tuple[str, str]]:
    return [(kind, text.strip()) for kind, text, *_ in lines.lines[position]["lines"]]


def test_of_a_changed_object_the_changes_stand_in_what_is_around_them() -> None:
    before, after = (config(**{f"k{at}": "v" for at in range(9)}, z=end) for end in ("1", "2"))
    lines = found(planned(Action.UPDATE, before, after))
    assert lines.counts == {"0": [1, 1]}
    expected = [(" ", f"k{at}: v") for at in (6, 7, 8)] + [("-", 'z: "1"'), ("+", 'z: "2"')]
    assert texts(lines, "0")[1:] == expected
    assert texts(lines, "0")[0][0] == "@"
    *_, old, new = lines.lines["0"]["lines"][-1]
    assert (old, new) == (0, 16)


def test_a_new_object_is_kept_whole_and_one_that_goes_or_stays_is_not() -> None:
    lines = found(
        planned(Action.NONE, config(), config()),
        planned(Action.DELETE, config(note="gone"), None),
        planned(Action.CREATE, None, config(note="come")),
    )
    assert lines.counts == {"2": [len(lines.lines["2"]["lines"]), 0]}
    assert ("+", "note: come") in texts(lines, "2")


def test_what_changes_has_room_before_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_BYTES", 300)
    new, other = config(**{f"k{at}": "v" * 40 for at in range(20)}), config(note="2")
    lines = found(planned(Action.CREATE, None, new), planned(Action.UPDATE, config(note="1"), other))
    assert texts(lines, "1")[-2:] == [("-", 'note: "1"'), ("+", 'note: "2"')]
    assert lines.lines["1"]["left"] == 0
    kept = lines.lines["0"]
    assert kept["left"] + len(kept["lines"]) == lines.counts["0"][0], "what there is no room for is counted"
    assert kept["left"] > 0


def test_no_object_and_no_line_is_kept_without_a_bound() -> None:
    long = config(**{f"k{at:05}": "v" for at in range(room.MOST_LINES + 10)}, long="w" * 100_000)
    kept = found(planned(Action.CREATE, None, long)).lines["0"]
    assert len(kept["lines"]) == room.MOST_LINES
    lines = found(planned(Action.CREATE, None, config(long="w" * 100_000))).lines["0"]["lines"]
    assert max(len(text) for _, text, *_ in lines) == room.MOST_CHARACTERS + 1


def test_texts_of_others_are_safe_to_show() -> None:
    lines = found(planned(Action.UPDATE, config(note="a"), config(note="\u202e b")))
    assert not any("\u202e" in text for _, text in texts(lines, "0"))


def test_the_values_of_a_secret_are_not_kept() -> None:
    contents = []
    for word in ("b2xk", "bmV3"):
        secret = {**config(), "kind": "Secret", "data": {"password": word, "user": "YWRh"}}
        contents.append(Content((Manifest(secret),), "harbour", "installer", (), f"sha256:{word[0] * 64}"))
    plan = pipeline.look_offline(contents[1], contents[0]).plan
    lines = found(*plan.actions)
    said = "".join(text for _, text in texts(lines, "0"))
    assert "password" in said
    assert not any(word in said for word in ("b2xk", "bmV3", "YWRh"))


def test_it_ends_where_there_is_no_time_left() -> None:
    begun = []

    def begin() -> None:
        begun.append(1)
        if len(begun) > 1:
            raise OutOfTime("it took too long")

    many = [planned(Action.UPDATE, config(note="1"), config(note=str(at))) for at in range(2, 9)]
    with pytest.raises(OutOfTime):
        changed_lines(many, begin=begin)
    assert len(begun) == 2
