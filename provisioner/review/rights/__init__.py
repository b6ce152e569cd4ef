"""Who may do what, before and after a change, account by account."""
