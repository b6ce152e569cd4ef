"""Work under a claim: one worker at a time, deaths of workers counted, and what killed one is worked on alone.

A worker process works on several rows in threads, so whatever kills it takes the claims of innocent rows with it. A row
whose worker died is therefore worked on next in a process of its own. The innocent comes through there; what kills its
process a second time does so alone, and is given up in words (security.md S26).
"""

from approvals.working.heartbeat import Heartbeat
from approvals.working.work import Recurring, Step, Work, do

__all__ = ["Heartbeat", "Recurring", "Step", "Work", "do"]
