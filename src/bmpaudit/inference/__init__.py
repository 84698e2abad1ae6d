"""One released model: who was in its training sample?"""

from bmpaudit.inference.infer import Inference, infer

__all__ = ["Inference", "infer"]
