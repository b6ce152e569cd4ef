"""How long a request is, from its head. Where gunicorn might read another length, it is refused."""

from __future__ import annotations

import re
from http import HTTPStatus

MAX_HEAD = 64 * 1024
# Above what Django reads (DATA_UPLOAD_MAX_MEMORY_SIZE).
MAX_BODY = 5 * 1024 * 1024
END_OF_HEAD = b"\r\n\r\n"
LENGTHS = re.compile(rb"\ncontent-length[ \t]*:([^\r\n]*)", re.IGNORECASE)
NUMBER = re.compile(rb"0|[1-9]\d{0,11}")
CHUNKED = re.compile(rb"\ntransfer-encoding[ \t]*:", re.IGNORECASE)
CONTINUE = re.compile(rb"\r\nexpect:[ \t]*100-continue", re.IGNORECASE)


class Unacceptable(Exception):
    """A request that no thread is given: its body has no length, or one that is too large."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.answer = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def length_of_request(begin: bytes | bytearray) -> int | None:
    """In bytes, with head and body; None while the head is not all there. Raises Unacceptable."""
    end = begin.find(END_OF_HEAD)
    if end < 0:
        if len(begin) > MAX_HEAD:
            raise Unacceptable(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        return None
    return end + len(END_OF_HEAD) + _length_of_body(bytes(begin[: end + 2]))


def is_waiting_to_continue(begin: bytes | bytearray) -> bool:
    """Whether the client sends its body only once it is told to."""
    return CONTINUE.search(begin, 0, begin.find(END_OF_HEAD) + 2) is not None


def _length_of_body(head: bytes) -> int:
    if CHUNKED.search(head):
        raise Unacceptable(HTTPStatus.LENGTH_REQUIRED)
    lengths = [found.strip(b" \t") for found in LENGTHS.findall(head)]
    if not lengths:
        return 0
    if len(lengths) > 1 or not NUMBER.fullmatch(lengths[0]):
        raise Unacceptable(HTTPStatus.BAD_REQUEST)
    length = int(lengths[0])
    if length > MAX_BODY:
        raise Unacceptable(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return length
