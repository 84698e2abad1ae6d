"""What this processor supports."""

def supports(instruction_set: str) -> bool:
    """Whether it can run kernels compiled for this set: baseline, avx2, avx512 or tuned."""
