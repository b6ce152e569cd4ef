"""An SMTP server of a test's own, in a thread: STARTTLS, sign-in and mails as they came over the wire."""

from __future__ import annotations

import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

from tests.support.servers.http import Authority


@dataclass
class MailServer:
    """What was sent to it; it refuses the recipients in `refused` with the reply beside them."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    signed_in: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@contextmanager
def mail_server(authority: Authority) -> Iterator[MailServer]:
    """It takes mail over TLS only."""
    heard = MailServer()

    class Talk(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 mail.example.com")
            is_safe = False
            while line := self.rfile.readline().decode().strip():
                verb = line[:4].upper()
                if verb == "EHLO":
                    self.say("250-mail.example.com", "250 AUTH PLAIN" if is_safe else "250 STARTTLS")
                elif verb == "STAR":
                    self.say("220 go ahead")
                    try:
                        self.connection = authority.server_context().wrap_socket(self.connection, server_side=True)
                    except ssl.SSLError:  # the client does not trust us
                        return
                    self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
                    is_safe = True
                elif not is_safe:
                    self.say("530 5.7.0 Must issue a STARTTLS command first")
                elif verb == "AUTH":
                    heard.signed_in.append(base64.b64decode(line.split()[-1]).decode())
                    self.say("235 2.7.0 ok")
                elif verb == "RCPT":
                    address = line.partition("<")[2].partition(">")[0]
                    heard.recipients += [] if address in heard.refused else [address]
                    self.say(heard.refused.get(address, "250 ok"))
                elif verb == "DATA":
                    self.say("354 go ahead")
                    raw = b"".join(iter(self.rfile.readline, b".\r\n")).replace(b"\r\n..", b"\r\n.")
                    heard.mails.append(message_from_bytes(raw, policy=policy.default))
                    self.say("250 ok")
                else:
                    self.say("221 bye" if verb == "QUIT" else "250 ok")

        def say(self, *lines: str) -> None:
            self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talk) as server:
        server.daemon_threads = True
        heard.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield heard
        finally:
            server.shutdown()
