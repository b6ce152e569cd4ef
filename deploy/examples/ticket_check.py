"""An external check that passes a request whose change ticket is approved. It needs the standard library only.

    TICKET_SECRET=whsec_… PRATIQUE_URL=https://pratique.example.com python3 ticket_check.py tickets.json 8080

`tickets.json` has the state of each ticket, as `{"CHG-7": "approved"}`; ask your ticket system in `judge` instead.
docs/reviewing/external-checks.md says what Pratique sends and expects. Run it behind a proxy that speaks TLS.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import os
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MAX_BODY_BYTES = 64 * 1024
TOLERANCE_SECONDS = 300
logger = logging.getLogger("ticket_check")


def is_signed(secret: str, headers: dict[str, str], body: bytes, now: float) -> bool:
    """Whether Pratique signed it, and not long ago (Standard Webhooks)."""
    sent_at = headers.get("webhook-timestamp", "")
    if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) < 16):
        return False
    if abs(now - int(sent_at)) > TOLERANCE_SECONDS:
        return False
    signed = f"{headers.get('webhook-id', '')}.{sent_at}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # While a secret is changed, both sign.
    found = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(expected.encode(), one) for one in found)


def judge(data: dict[str, Any], tickets: dict[str, str]) -> tuple[str, str]:
    """The outcome and the message for what an event tells of a request."""
    ticket = data["change"]["ticket"]
    state = tickets.get(ticket, "")
    if state == "approved":
        return "passed", f"{ticket} is approved"
    if state == "open":
        return "pending", f"{ticket} is not approved yet: approve it and run the check again"
    return "failed", f"{ticket} does not exist" if ticket else "the change names no ticket"


def answer(event: dict[str, Any], tickets: dict[str, str], pratique: str) -> None:
    data = event["data"]
    url = data["answer"]["url"]
    if not url.startswith(f"{pratique}/api/v1/checks/"):
        raise ValueError(f"the event wants its answer at {url}, which is not {pratique}")
    outcome, message = judge(data, tickets)
    body = {"outcome": outcome, "message": message, "subject_digest": data["subjectDigest"]}
    headers = {"Authorization": f"Bearer {data['answer']['token']}", "Content-Type": "application/json"}
    sent = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - its scheme is that of Pratique's URL, which the operator gives
    with urllib.request.urlopen(sent, timeout=10) as response:  # noqa: S310 - as above: the scheme is the operator's
        logger.info("request %s: %s (%s)", data["request"]["uid"], message, response.status)


class Handler(BaseHTTPRequestHandler):
    timeout = 15  # seconds that a client may take for its request
    secret, pratique, tickets = "", "", Path("tickets.json")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 16) or int(length) > MAX_BODY_BYTES:
            self.send_error(413)
            return
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not is_signed(self.secret, headers, body, time.time()):
            self.send_error(401)
            return
        try:
            answer(json.loads(body), json.loads(self.tickets.read_text("utf-8")), self.pratique)
        except Exception:  # whatever it is: where the answer did not arrive, Pratique has to send the event again
            logger.exception("not answered")
            self.send_error(500)
            return
        # Sent again, the event has the same id, and gets the same answer.
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main(tickets: str, port: str = "8080") -> None:
    logging.basicConfig(level=logging.INFO)
    Handler.secret, Handler.tickets = os.environ["TICKET_SECRET"], Path(tickets)
    Handler.pratique = os.environ["PRATIQUE_URL"].rstrip("/")
    ThreadingHTTPServer(("", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
