"""What a request changes, object by object and line by line: the page of changes."""
