"""What a parent sends to its child: many questions in one message, what they share once. PURE."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from provisioner.expressions.questions import Language

HEAD = struct.Struct("!I")  # of each message and answer: how many bytes follow
NO_DATA = -1


@dataclass(frozen=True, slots=True)
class Message:
    """Each question is (place in `languages`, text, key of `data` or NO_DATA); `data` holds pickled variables.

    Questions about the same data stand together. They are answered in their order, each by a list: outcome, value,
    type, words, program in base64. The last one before the child waits or leaves has two entries more:
    whether it leaves, and the seconds of processor time that the message took.
    """

    languages: tuple[Language, ...]
    data: dict[int, bytes]
    questions: tuple[tuple[int, str, int], ...]
    wants_program: bool = False
