"""Audits and releases side by side: which leaks more, by how much, at which cost."""
