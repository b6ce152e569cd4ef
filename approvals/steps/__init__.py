"""What the machine does: claim the row, work outside transactions, record the result. The row says what comes next."""
