"""Tests press Ctrl-C in programs that they start; these ignore it where the tests were started in the background of a shell."""

import signal

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
