"""Hypothesis for the whole suite: no deadline, because a busy machine is no failure."""

from hypothesis import settings

settings.register_profile("threadbook", deadline=None, print_blob=True)
settings.load_profile("threadbook")
