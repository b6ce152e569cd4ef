"""What an apply would do, object by object, asked by dry-run; nothing is changed here."""
