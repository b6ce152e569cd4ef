"""Trying a credential. An attempt is counted before it is judged, so that many at once do not slip through.

Each door counts by name and address together, by address, and by name. A stranger can use up what they share with a
person, the name alone, but whoever has come in from an address before is let in from there all the same: only their
own failures, by name and address, count. So nobody can lock somebody else out from everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from approvals.limits import counters
from approvals.limits.addresses import counted_as
from approvals.limits.counters import Limit

MINUTE, QUARTER, MONTH = 60, 15 * 60, 30 * 86400
_KNOWN = Limit("known", 1, MONTH)
_WORDS = "too many failed attempts: try again in {time}"
_PAIR_WORDS = (
    "Too many failed attempts for this name from your address. Try again in {time}. Other names and other"
    " addresses are not locked."
)


@dataclass(frozen=True, slots=True)
class Door:
    """One kind of credential; None where nothing is counted so."""

    name: str
    by_pair: Limit | None
    by_address: Limit | None = None
    by_name: Limit | None = None
    # What is said where name and address together were tried too often.
    words: str = _WORDS


PASSWORD = Door(
    "password",
    Limit("password-pair", 4, QUARTER),
    Limit("address", 30, QUARTER),
    Limit("password-name", 100, QUARTER),
    _PAIR_WORDS,
)
# The name is the cluster's: each attempt asks it for a TokenReview, so strangers make at most one a second of them.
CLUSTER_TOKEN = Door(
    "cluster-token", Limit("cluster-pair", 10, QUARTER), Limit("address", 30, QUARTER), Limit("cluster", 60, MINUTE)
)
API_TOKEN = Door("api-token", None, Limit("token-address", 30, 5 * MINUTE))
COMMAND_LINE = Door("command-line", None, Limit("command-line-address", 30, 5 * MINUTE))
CHAT_SIGNATURE = Door("chat", None, Limit("chat-address", 30, 5 * MINUTE))
# The name is the user's who enters it, signed in, from wherever.
LINK_CODE = Door("link-code", Limit("link-code", 10, QUARTER))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a credential at `door`, for `name`, from the client at `address`."""

    door: Door
    address: str = ""
    name: str = ""

    def begin(self) -> None:
        """Count it, before the credential is looked at. Raises TooManyAttempts."""
        if self.door.by_pair:
            counters.take(self.door.by_pair, self._place, self.name, words=self.door.words)
        if self._is_known():
            return
        if self.door.by_address:
            counters.take(self.door.by_address, self._place, words=_WORDS)
        if self.door.by_name:
            counters.take(self.door.by_name, self.name, words=_WORDS)

    def succeed(self) -> None:
        """The credential was right: uncount the attempt, and know the pair from now on."""
        if self.door.by_pair:
            counters.forget(self.door.by_pair, self._place, self.name)
        if self._is_known():
            return
        if self.door.by_address:
            counters.give_back(self.door.by_address, self._place)
        if self.door.by_name:
            counters.give_back(self.door.by_name, self.name)
        counters.note(_KNOWN, self.door.name, self._place, self.name)

    def _is_known(self) -> bool:
        return counters.is_noted(_KNOWN, self.door.name, self._place, self.name)

    @property
    def _place(self) -> str:
        return counted_as(self.address)
