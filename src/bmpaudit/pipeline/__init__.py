"""The pipeline from graph to report: at once, step by step, until enough is known, or on models trained elsewhere."""
