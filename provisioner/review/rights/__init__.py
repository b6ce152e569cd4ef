"""Who may do what, before and after a change, account by account.

- `account_graph`: how accounts come by their rights, as a picture
- `accounts`: the accounts and bindings themselves
- `permission_report`: the difference, account by account
- `permission_words`: rules in words
- `rbac_before_after`: roles and bindings on both sides of a change
"""

__all__ = [
    "account_graph",
    "accounts",
    "permission_report",
    "permission_words",
    "rbac_before_after",
]
