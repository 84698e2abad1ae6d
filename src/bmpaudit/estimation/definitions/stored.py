"""What a posterior's file says of a definition whose code has not been run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from bmpaudit import registry
from bmpaudit.estimation.definitions.base import Parameter
from bmpaudit.estimation.proven import ProvenEpsilon


@dataclass(frozen=True)
class StoredDefinition(registry.UntrustedPart):
    """A definition of somebody's own, as a file describes it: enough to read a posterior, not to estimate another.

    Attributes:
        kind: `definition`.
        target: `module:Name` of its class.
        settings: Settings of the class.
        parameters: Parameters of the definition.
        uses_prior: Whether prior odds count.
        proven: What was proven about each parameter, by name.
    """

    parameters: tuple[Parameter, ...] = ()
    uses_prior: bool = True
    proven: Mapping[str, ProvenEpsilon] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Short name for titles, file names and legends."""
        return registry.label(registry.DEFINITION, self)

    def epsilons(self, *_: Any) -> NoReturn:
        """Needs the code of the definition.

        Raises:
            UntrustedCodeError: always.
        """
        raise registry.untrusted(self.kind, self.target)

    empties_support = epsilons
