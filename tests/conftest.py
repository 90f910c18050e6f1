"""What the whole suite needs of its surroundings.

Hypothesis has no deadline, because a busy machine is no failure. And a suite that was started in
the background ignores Ctrl-C, which the programs it starts would inherit: tests that interrupt
them need them to listen.
"""

import signal

from hypothesis import settings

settings.register_profile("threadbook", deadline=None, print_blob=True)
settings.load_profile("threadbook")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
