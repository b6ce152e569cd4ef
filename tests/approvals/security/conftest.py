"""The same small world as the tests of the core."""

from tests.support.approvals.fixtures import here

__all__ = ["here"]
