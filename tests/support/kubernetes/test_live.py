"""What does not answer yet is asked again, and what is wrong for another reason fails at once."""

from __future__ import annotations

import pytest

from provisioner.errors import Forbidden, Unreachable
from tests.support.kubernetes.live import once_answered


def test_what_answers_later_is_asked_again() -> None:
    answers = iter([Unreachable("503"), Unreachable("503"), "yes"])

    def call() -> str:
        answer = next(answers)
        if isinstance(answer, Unreachable):
            raise answer
        return answer

    assert once_answered(call) == "yes"


def test_what_is_refused_is_not_asked_again() -> None:
    asked: list[int] = []

    def call() -> None:
        asked.append(1)
        raise Forbidden("no")

    with pytest.raises(Forbidden):
        once_answered(call)
    assert asked == [1]
