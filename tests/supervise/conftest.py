"""Signals as in a shell.

Whoever starts the tests in the background of a script, or by nohup, has them ignored, and so would all
programs here.
"""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
