"""What every part may use: libtrapline by ctypes, paths, the options of the environment, lines on stderr."""

VERSION = "0.1.0"
