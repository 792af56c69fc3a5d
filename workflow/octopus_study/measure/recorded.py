"""Values that a timed run says of itself, kept by the block in which it ran."""

from collections.abc import Callable, Iterable, Mapping

from octopus_study.measure.clocks import HostClock
from octopus_study.measure.rows import Row


class BlockClock(HostClock):
    """Wall time, with no run before it: what runs is warm from the block before. `block` is the number of the block
    that is being measured, negative before the first."""

    def __init__(
        self, synchronize: Callable[[], object] | None = None, throttle: Callable[[], str | None] | None = None
    ) -> None:
        super().__init__(synchronize, throttle)
        self.block = -2  # the warm-up settles too

    def settle(self) -> None:
        super().settle()
        self.block += 1


class Recorded:
    """A run whose values are kept by block; `quantities` names those of rows by the run's own names."""

    def __init__(
        self, run: Callable[[], Mapping[str, float]], clock: BlockClock, quantities: Mapping[str, str]
    ) -> None:
        self._run, self._clock, self._quantities = run, clock, quantities
        self._found: dict[int, Mapping[str, float]] = {}

    def run(self) -> None:
        """Run once."""
        self._found[self._clock.block] = self._run()

    def rows(self, name: str, timed: Iterable[Row]) -> list[Row]:
        """The values of the blocks that count, of which `timed` has the method's rows; or why there are none."""
        rows = []
        for row in [row for row in timed if row.method == name]:
            for own, quantity in self._quantities.items():
                value = None if row.value is None else self._found[row.block][own]
                rows.append(row._replace(quantity=quantity, value=value))
        return rows
