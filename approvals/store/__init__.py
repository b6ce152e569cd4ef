"""The content store: rendered manifests by digest, in a folder or a bucket, encrypted (security-rules.md S30)."""

from approvals.store.contents import digest_of, get, is_ours, path_of, place_of, put
from approvals.store.copying import ContentsFound, copy_contents, verify_contents
from approvals.store.trial import Tried, try_store

__all__ = [
    "ContentsFound",
    "Tried",
    "copy_contents",
    "digest_of",
    "get",
    "is_ours",
    "path_of",
    "place_of",
    "put",
    "try_store",
    "verify_contents",
]
