"""What holds credentials or values is encrypted before it is stored (security-rules.md S30).

`keys` reads the keys that the environment gives, `envelope` is the form of everything encrypted, `fields` are columns
and `files` the files of the content store.

Modules that other rooms use:

- `envelope`: the form of everything encrypted: a header, then chunks
- `fields`: columns that are encrypted in the database and plain in Python
- `files`: files that only the service reads, written whole or not at all
- `keys`: the keys of the environment
"""

__all__ = [
    "envelope",
    "fields",
    "files",
    "keys",
]
