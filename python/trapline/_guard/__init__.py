"""The guard of torch's operations: the compiled adapter or the one in Python, and waits for the device."""
