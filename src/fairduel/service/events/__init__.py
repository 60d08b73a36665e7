"""What happened, in order: the log, its storage, and the state that follows from it."""
