"""What each kind of deciding object says of itself; `table` lists them. PURE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from approvals.deciding.selector import Selector

VERSION = "v1alpha2"


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of the page's form beside those that every kind has. `path` is its place in the spec, `rows` makes it a
    text of several lines; one that `is_yaml` holds a value written as YAML, one that `is_number` a whole number."""

    path: str
    label: str
    help: str
    rows: int = 0
    is_yaml: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    is_required: bool = False
    is_number: bool = False


class DecidingKind(ABC):
    """The spec of one object, parsed. A subclass is a frozen dataclass with the pure judgement of its kind."""

    kind: ClassVar[str]
    plural: ClassVar[str]  # as the API server has it
    slug: ClassVar[str]  # in addresses
    words: ClassVar[str]  # `approval rule`
    about: ClassVar[str]  # what it does, for the head of its list: one sentence
    form: ClassVar[tuple[FormField, ...]] = ()
    # Templates name the class itself.
    do_not_call_in_templates: ClassVar[bool] = True

    description: str
    selector: Selector
    when: str

    @classmethod
    @abstractmethod
    def parse(cls, spec: Mapping[str, Any]) -> Self:
        """Raises UnreadableObject with the place of what is wrong."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """What it asks for, in a few words: the column of lists, and `status.summary` in the cluster."""

    def status(self, now: datetime) -> Mapping[str, Any]:
        """What the cluster shows beside the summary and the condition Ready."""
        return {}

    def next_change(self, now: datetime) -> datetime | None:
        """When it says something else without being written, such as a window that opens; None where never."""
        return None


@dataclass(frozen=True, slots=True)
class EarlierSpec:
    """What an object said until a moment."""

    spec: Mapping[str, Any]
    until: datetime


@dataclass(frozen=True, slots=True)
class SeenObject:
    """An object as it is, and what it said earlier, the oldest first. One that is gone says nothing: `spec` is None."""

    name: str
    uid: str
    spec: Mapping[str, Any] | None
    changed_at: datetime
    earlier: tuple[EarlierSpec, ...] = ()
