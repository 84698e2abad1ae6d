"""Published results of others that the engine can run: figures with their sources, and audit plans beside them."""
