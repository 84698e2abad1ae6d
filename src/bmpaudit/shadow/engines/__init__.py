"""What trains shadow models: one file for each engine; PyTorch is imported only by its own."""

from bmpaudit.shadow.engines.native import NativeEngine

__all__ = ["NativeEngine"]
