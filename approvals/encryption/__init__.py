"""What holds credentials or values is encrypted before it is stored (security-rules.md S30).

`keys` reads the keys that the environment gives, `envelope` is the form of everything encrypted, `fields` are columns
and `files` the files of the content store.
"""
