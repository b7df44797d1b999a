"""What is kept on disk: one content hash, one atomic write, one lock."""
