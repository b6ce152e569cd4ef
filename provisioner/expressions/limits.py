"""The limits of an evaluation. What passes one is not evaluated; the process that tried is replaced."""

from __future__ import annotations

MAX_CHILDREN = 4  # of one process of ours, all threads together
CPU_SECONDS = 1.0  # of processor time for one expression
WALL_SECONDS = 3.0  # for one expression, on a machine with much else to do
BATCH_SECONDS = 5.0  # for all expressions that are asked together
UNCHARGED_SECONDS = 0.0001  # of processor time, which each answer may take and which no piece of work is charged for
FREE_CHILD_SECONDS = 5.0  # how long to wait for a child that is free
START_SECONDS = 10.0  # until a new child is ready to be asked
MAX_LOST = 3  # children that one text may cost, and the questions about the same data, in one piece of work
MEMORY_BYTES = 256 * 1024 * 1024  # of address space, in a child
MAX_KEPT_BYTES = 96 * 1024 * 1024  # resident in a child after an answer: one that holds more is replaced
MAX_QUESTION_BYTES = 8 * 1024 * 1024
MESSAGE_BYTES = 512 * 1024  # of data and texts in one message, where several questions fit
MAX_MESSAGE_QUESTIONS = 4_096
MAX_ANSWER_BYTES = 4 * 1024 * 1024
MAX_WORDS = 4_000  # characters of CEL's own words
MAX_TEXT = 8 * 1024  # characters of a string that an expression comes to
REMEMBERED_SECONDS = 60.0  # an expression that ended its child is not tried on the same data again for so long
MAX_REMEMBERED = 1_000
