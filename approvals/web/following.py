"""Parts of pages that follow what happens: a page asks for such a part again and again, until nothing can change.

The part says what it is now by a mark, which the next question carries (If-None-Match): the answer to that is a 304
without a body while it is as it was. No cache keeps it, because rights end. Such a part holds no nonce and no form's
token, which differ each time. A page that asks by itself does not keep its session from ending for inactivity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.cache import add_never_cache_headers
from django.utils.safestring import SafeString

from approvals.web.rendering import page


def by_itself(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """For what pages ask for without anybody's doing, as project.middleware reads; the innermost decorator."""
    view.is_by_itself = True  # type: ignore[attr-defined] # views are marked so, as by csrf_exempt
    return view


@dataclass(frozen=True, slots=True)
class Followed:
    """One part: its id on the page, where it is asked for again, and after how many seconds; 0 for never again.

    `body` is what stands in it; `beside` goes into the element of the page whose id is `beside_id`.
    """

    name: str
    address: str
    seconds: int
    body: SafeString
    beside: str = ""
    beside_id: str = ""

    @property
    def mark(self) -> str:
        told = f"{self.seconds}\n{self.beside}\n{self.body}"
        return hashlib.sha256(told.encode()).hexdigest()[:32]


def again(http: HttpRequest, part: Followed) -> HttpResponse:
    """The part as it is now; 304 where the browser has just that."""
    etag = f'"{part.mark}"'
    if http.headers.get("If-None-Match") == etag:
        answer: HttpResponse = HttpResponseNotModified()
        add_never_cache_headers(answer)
    else:
        answer = page(http, "frame/_followed.html", {"part": part, "is_again": True})
    answer["ETag"] = etag
    return answer
