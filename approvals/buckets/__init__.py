"""The content store in a bucket of S3, for workers that share no disk.

boto3 is loaded when a bucket is used first: it is the extra `s3`, and takes memory.

Modules that other rooms use:

- `bucket`: the storage of Django that `STORAGES["content"]` names
- `connection`: the clients of one process, and how long each waits for an S3 server
- `location`: the settings that say which bucket, and what is wrong with them
"""

__all__ = [
    "bucket",
    "connection",
    "location",
]
