"""The shipped admission policies: whether they are in force on a cluster, and what they prove there.

One mechanism for all of them: `policies` says what is shipped and how to try it, and tells people; `survey` keeps since
when it stands. `stamp` says who wrote a spec.
"""

from approvals.admission.policies import AUTHORS, EVERY, REMEDY, REVIEWS, PolicyNotice, PolicySet, told_of
from approvals.admission.stamp import ANNOTATION, identity_in, stamp_for, stamp_of
from approvals.admission.survey import (
    MARGIN,
    InForce,
    PolicyState,
    StampedWrite,
    in_force,
    look,
    met,
    number_of,
    state_of,
    still_in_force,
    survey,
)

__all__ = [
    "ANNOTATION",
    "AUTHORS",
    "EVERY",
    "MARGIN",
    "REMEDY",
    "REVIEWS",
    "InForce",
    "PolicyNotice",
    "PolicySet",
    "PolicyState",
    "StampedWrite",
    "identity_in",
    "in_force",
    "look",
    "met",
    "number_of",
    "stamp_for",
    "stamp_of",
    "state_of",
    "still_in_force",
    "survey",
    "told_of",
]
