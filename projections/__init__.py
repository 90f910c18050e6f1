"""Events become rows and files here. A projection never decides."""
