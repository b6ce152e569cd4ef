"""Work under a claim: one worker at a time, deaths counted, and what is dangerous done in a subprocess.

`do` (claim_loop.py) is the way through this room: claim, look, release. work.py says what each kind of work has to say
of itself. A look that reads foreign content for the first time, and every look at a row whose worker died, happens in a
subprocess (subprocesses.py, subprocess_main.py), for which it needs a place (places.py). It gives way the more of the
processor it and its group have used; memory.py ends the largest before all of them together use up the memory. What
dies twice is given up in words (security-rules.md S26). What waits for minutes gives the worker's thread back meanwhile
(background.py).
"""

from approvals.working.background import Pledge, go_on, pledged, rest, resting, run_aside
from approvals.working.claim_loop import do
from approvals.working.heartbeat import Heartbeat
from approvals.working.places import in_turn
from approvals.working.subprocesses import begin, has_begun
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
