"""Events out: which occasions there are, the event of each, and to which kinds of targets it is sent."""
