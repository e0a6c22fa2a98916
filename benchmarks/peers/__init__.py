"""Systems that run beside ours on the same work, and what drives them all."""
