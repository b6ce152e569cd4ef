"""Signing in on the command line: at which issuers, and the token that comes of it."""

from approvals.services.command_line.exchanging import (
    CommandLineCode,
    CommandLineIssuer,
    command_line_issuers,
    sign_in_command_line,
)

__all__ = ["CommandLineCode", "CommandLineIssuer", "command_line_issuers", "sign_in_command_line"]
