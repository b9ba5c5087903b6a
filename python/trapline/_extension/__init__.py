"""Extension modules that fit one torch and one Python: found, or compiled on the user's machine and kept."""
