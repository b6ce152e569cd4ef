"""What each kind of deciding object says of itself; `table` lists them. PURE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Self

from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import SpecFields, UnreadableObject
from approvals.policy.expression import POLICY
from provisioner.expressions import Language

VERSION = "v1alpha2"
HOLDS_ALL = "the requests that it might select wait"
SELECTOR_PARTS = ("names", "matchLabels", "formats", "sourceHosts", "packages", "minSeverity")


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of the page's form beside those that every kind has. `path` is its place in the spec, `rows` makes it a
    text of several lines. One that `is_yaml` holds a list of mappings written as YAML, such as `example`, one that
    `is_number` a whole number, and one that `is_flag` is a checkbox. Of `choices` one is chosen, or any number of them
    where it `is_list`."""

    path: str
    label: str
    help: str
    rows: int = 0
    is_yaml: bool = False
    is_list: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    initial: str = ""
    is_required: bool = False
    is_number: bool = False
    is_flag: bool = False
    example: str = "- {name: security, groups: [security]}"


@dataclass(frozen=True, slots=True)
class ReadyState:
    """The condition Ready of an object that can be read."""

    is_ready: bool
    reason: str
    words: str


@dataclass(frozen=True, slots=True)
class SpecExpression:
    """CEL in a spec, which has to compile to this `type`."""

    place: str
    text: str
    language: Language = POLICY
    type: str = "bool"


class DecidingKind(ABC):
    """The spec of one object, parsed. A subclass is a frozen dataclass with the pure judgement of its kind."""

    kind: ClassVar[str]
    plural: ClassVar[str]  # as the API server has it
    slug: ClassVar[str]  # in addresses
    words: ClassVar[str]  # `approval rule`
    words_for_many: ClassVar[str] = ""  # where it is not `words` with an s
    about: ClassVar[str]  # what it does, for the head of its list: one sentence
    # What follows when one is deleted, for who is about to.
    after_deletion: ClassVar[str] = ""
    form: ClassVar[tuple[FormField, ...]] = ()
    if_unknown: ClassVar[str] = "the request is selected"  # what follows where `when` cannot be evaluated
    asks: ClassVar[str] = "Asks for"  # what its summary is called
    needs_people: ClassVar[bool] = (
        False  # whether it counts only once people stand behind it (ledger.deciding.confirmations)
    )
    has_description: ClassVar[bool] = True
    # Why pages and REST neither make nor change one, and who does; "" where they do.
    written_by: ClassVar[str] = ""
    # Where the spec has its selector, and which parts of it; whether it has `when` as well.
    selector_place: ClassVar[str] = "selector"
    selector_parts: ClassVar[tuple[str, ...]] = SELECTOR_PARTS
    has_when: ClassVar[bool] = True
    # Whether it matters who wrote an object of it, so that the watch finds out.
    are_authors_proved: ClassVar[bool] = False
    # Templates name the class itself.
    do_not_call_in_templates: ClassVar[bool] = True

    description: str
    selector: Selector
    when: str

    @classmethod
    @abstractmethod
    def parse(cls, spec: Mapping[str, Any]) -> Self:
        """Raises UnreadableObject with the place of what is wrong."""

    @classmethod
    def read(cls, spec: Mapping[str, Any]) -> tuple[Self | None, str]:
        """What a spec says, and ""; None where it cannot be read, and why."""
        try:
            return cls.parse(spec), ""
        except UnreadableObject as exc:
            return None, str(exc)

    @classmethod
    def read_selector(cls, spec: Mapping[str, Any]) -> Selector:
        """What can be read of the selector of a spec that cannot be read; where that cannot either, it selects all."""
        try:
            return Selector.read(SpecFields(spec).inner(cls.selector_place))
        except UnreadableObject:
            return Selector()

    @property
    @abstractmethod
    def summary(self) -> str:
        """What it asks for, in a few words: the column of lists, and `status.summary` in the cluster."""

    @property
    def selects(self) -> str:
        """What it is about, in a few words."""
        return self.selector.words

    @property
    def expressions(self) -> tuple[SpecExpression, ...]:
        return (SpecExpression("spec.when", self.when),) if self.when else ()

    @property
    def needs_authors(self) -> bool:
        """Whether it counts only where everybody is known who ever wrote it."""
        return False

    @classmethod
    def describe_unreadable(cls, spec: Mapping[str, Any]) -> str:
        """What follows where the spec cannot be read."""
        return HOLDS_ALL

    @classmethod
    def plural_words(cls) -> str:
        return cls.words_for_many or f"{cls.words}s"

    def status(self, now: datetime) -> Mapping[str, Any]:
        """What the cluster shows beside the summary and the condition Ready."""
        return {}

    def state(self, now: datetime) -> str:
        """What it does at this moment, in a few words; "" where that is always the same."""
        return ""

    def ready(self, people: Sequence[str], now: datetime) -> ReadyState:
        """Whether it counts; `people` are the names of those who stand behind it, where it needs any."""
        return ReadyState(True, "Read", "Pratique reads it")

    def why_not_confirmable(self, now: datetime) -> str:
        """Why nobody can confirm it as it is; "" where somebody can."""
        return "" if self.needs_people else f"{self.plural_words()} need no confirmation"

    def ends_at(self, since: datetime) -> datetime | None:
        """When Pratique deletes one that was made at `since`; None where it does not."""
        return None

    @classmethod
    def unreadable_ends_at(cls, since: datetime) -> datetime | None:
        """When Pratique deletes one of `since` that it cannot read; None where it stays."""
        return None

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
    """An object as it is, and what it said earlier, the oldest first. One that is gone says nothing: `spec` is None.

    `authors` are the records of all who ever wrote it, an empty one for somebody unknown. Not `is_seen`: the cluster
    has it otherwise than the watch saw it last. `text` is the spec as the database has it, by which what was read of it
    is remembered; "" where that is not worth it.
    """

    name: str
    uid: str
    spec: Mapping[str, Any] | None
    changed_at: datetime
    earlier: tuple[EarlierSpec, ...] = ()
    authors: tuple[Mapping[str, Any], ...] = ()
    is_seen: bool = True
    text: str = ""
