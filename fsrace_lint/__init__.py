"""Find, prove and fix filesystem races in Python that many processes run at once."""

from typing import Final

__version__: Final = "0.1.0"
