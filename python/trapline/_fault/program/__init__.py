"""The user's program at a fault: frames, lines, names, what holds what."""
