"""Models that bmpaudit did not train."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainedElsewhere:
    """Models trained outside of bmpaudit: their memberships and statistics are known, and nothing else."""

    def __str__(self) -> str:
        return "trained elsewhere"
