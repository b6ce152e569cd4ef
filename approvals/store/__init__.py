"""The content store: rendered manifests by digest, in a folder or a bucket, encrypted (security-rules.md S30)."""

from approvals.store.contents import digest_of, digest_of_bytes, get, is_ours, is_same, path_of, place_of, put, salted
from approvals.store.maintenance import ContentsFound, Tried, copy_contents, try_store, verify_contents

__all__ = [
    "ContentsFound",
    "Tried",
    "copy_contents",
    "digest_of",
    "digest_of_bytes",
    "get",
    "is_ours",
    "is_same",
    "path_of",
    "place_of",
    "put",
    "salted",
    "try_store",
    "verify_contents",
]
