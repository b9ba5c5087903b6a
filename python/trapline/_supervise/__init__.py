"""What a server's process does for ``trapline supervise``, and without it: requests, standby, the context."""
