"""Signals as in a shell: whoever starts the tests in the background or by nohup has some ignored, and so would all
programs here."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
