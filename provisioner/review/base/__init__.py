"""What all of a report stands on: the facts that checks read, the record, differences, numbers and safe text.

- `causes`: what several rules say of one cause is one finding
- `changes`: the fields in which two objects differ
- `claims`: which fields a rule judges
- `difference`: two objects as lines
- `facts`: what checks read, and how they make findings
- `fold`: what is found of many objects, said once
- `known`: what the report of what runs has as well
- `long_lines`: a long line that changes, in pieces
- `marks`: before and after in pictures
- `messages`: the sentence of a finding, and what it says wherever it holds
- `places`: all objects, versions and fields of a finding
- `record`: a report as JSON and back
- `renames`: objects that go under one name and come under another
- `shared_fields`: the same said of many fields of schemas
- `sizes`: how much claims and volumes hold
- `statements`: findings that say the same, told together
- `text`: text of others, made safe to look at
"""

__all__ = [
    "causes",
    "changes",
    "claims",
    "difference",
    "facts",
    "fold",
    "known",
    "long_lines",
    "marks",
    "messages",
    "places",
    "record",
    "renames",
    "shared_fields",
    "sizes",
    "statements",
    "text",
]
