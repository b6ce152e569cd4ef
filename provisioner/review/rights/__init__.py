"""Who may do what, before and after a change, account by account.

- `account_graph`: how accounts come by their rights, as a picture
- `account_powers`: what one account may do that another may not
- `accounts`: the accounts and bindings themselves
- `altered`: whose rights a change alters
- `role_holders`: what all who have a role gain and lose, said once
- `lost_rights`: what pods lose that they use
- `makers`: who of a bundle makes what its pods need
- `permission_report`: the difference, account by account
- `permission_words`: rules in words
- `renamed_roles`: roles and bindings that return under another name
- `rbac_before_after`: roles and bindings on both sides of a change
"""

__all__ = [
    "account_graph",
    "account_powers",
    "accounts",
    "altered",
    "lost_rights",
    "makers",
    "permission_report",
    "permission_words",
    "rbac_before_after",
    "renamed_roles",
    "role_holders",
]
