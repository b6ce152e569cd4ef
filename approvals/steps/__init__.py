"""What the machine does: claim the row, work outside transactions, record the result. The row says what comes next.

`advance` takes the step that the state of a request calls for, one file each: `prepare` (preparing, stale), `evaluate`
(in review), `approved`, `applying`, `applied` (where what runs is not healthy in time), `restore` (restoring).
"""
