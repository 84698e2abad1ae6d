"""What an audit found, for readers."""
