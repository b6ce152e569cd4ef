"""Work under a claim: one worker at a time, deaths counted, and what is dangerous done in a process of its own.

`do` (claim_loop.py) is the way through this room: claim, look, release. work.py says what each kind of work has to say
of itself. A look that reads foreign content for the first time, and every look at a row whose worker died, happens in a
process of its own (apart.py, child.py), for which it needs a place (places.py). A warden watches over these processes:
what has just begun goes first, and the largest is ended before all of them together use up the memory (shares.py
judges, linux.py reads). What dies twice is given up in words (security-rules.md S26). What waits for minutes gives the
worker's thread back meanwhile (aside.py).
"""

from approvals.working.apart import begin, has_begun
from approvals.working.aside import Pledge, go_on, pledged, rest, resting, run_aside
from approvals.working.claim_loop import do
from approvals.working.heartbeat import Heartbeat
from approvals.working.places import in_turn
from approvals.working.work import Recurring, Work, WorkStep

__all__ = [
    "Heartbeat",
    "Pledge",
    "Recurring",
    "Work",
    "WorkStep",
    "begin",
    "do",
    "go_on",
    "has_begun",
    "in_turn",
    "pledged",
    "rest",
    "resting",
    "run_aside",
]
