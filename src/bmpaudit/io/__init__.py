"""Reading what somebody else may have written: bounded, checked, nothing unpickled."""
