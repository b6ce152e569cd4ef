"""What surrounds the inbox: home with what happened, saved views, and deciding on several requests at once.

Modules that other rooms use:

- `bulk`: deciding on several requests at once
- `may_decide`: which requests a person may decide
- `news`: home, and how much is new
- `saved`: saved views of the inbox
- `sentences`: entries of the audit as sentences
"""

__all__ = [
    "bulk",
    "may_decide",
    "news",
    "saved",
    "sentences",
]
