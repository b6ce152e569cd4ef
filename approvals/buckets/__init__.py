"""The content store in a bucket of S3, for workers that share no disk.

boto3 is loaded when a bucket is used first: it is the extra `s3`, and takes memory.
"""
