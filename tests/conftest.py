"""Settings for all tests."""

import torch

# One thread: the models are tiny, and tests may share the machine.
torch.set_num_threads(1)
