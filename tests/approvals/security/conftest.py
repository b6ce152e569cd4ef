"""The same small world as the tests of the core."""

from tests.approvals.conftest import here

__all__ = ["here"]
