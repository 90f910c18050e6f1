"""Use cases: read, decide, append. Everything outside is behind a port."""
