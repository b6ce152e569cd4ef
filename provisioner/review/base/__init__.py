"""What all of a report stands on: the facts that checks read, the record, differences, numbers and safe text.

- `changes`: the fields in which two objects differ
- `difference`: two objects as lines
- `facts`: what checks read, and how they make findings
- `fold`: what is found of many objects, said once
- `marks`: before and after in pictures
- `places`: all objects, versions and fields of a finding
- `record`: a report as JSON and back
- `sizes`: how much claims and volumes hold
- `text`: text of others, made safe to look at
"""

__all__ = [
    "changes",
    "difference",
    "facts",
    "fold",
    "marks",
    "places",
    "record",
    "sizes",
    "text",
]
