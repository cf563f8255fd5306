"""The scopes of the closure: small ones, whose union meets every row and every reason.

One big scope does not end: three invocations in two turns with everything have more states than
anybody can wait for. In each profile the small ones come first.
"""

from __future__ import annotations

from typing import Final

from .approval_scopes import EDITS, GRANTS
from .life_scopes import ALIKE, FOUR, LEASES, LEASES_OF_THREE, OBSERVED, OUTCOMES
from .turn_scopes import LIMITS, MEMORY, REUSE, REUSE_OF_TWO

DEV: Final = (OUTCOMES, LEASES, OBSERVED, LIMITS, ALIKE)
CI: Final = (*DEV, MEMORY, EDITS, GRANTS, REUSE)
NIGHTLY: Final = (*CI, FOUR, LEASES_OF_THREE, REUSE_OF_TWO)
