"""What all of a report stands on: the facts that checks read, the record, differences and numbers."""
