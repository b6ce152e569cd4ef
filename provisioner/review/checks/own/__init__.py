"""Content that touches Pratique itself or hands out power over it (S22): rights, accounts, admission, other ways."""
