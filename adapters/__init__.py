"""The outside world, one thing a file; they meet in `wiring.py` only."""
