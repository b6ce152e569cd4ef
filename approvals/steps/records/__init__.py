"""What a step writes down of each object before and after it touches it, and what is read from that later."""
