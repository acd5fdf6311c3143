"""Deadlines for building device code, and the modules that they apply to.

A driver's compiler has no bound on time and memory. Code of an untrusted module is therefore built in a helper process
first (`BackendDevice.trial_build`), which is killed at its deadline. Code that was built there within the limits is
then built in this process. Code of trusted modules is built in this process at once, unless a deadline is given.

A module may declare a deadline of its own. In the helper the tighter deadline applies. A build in this process cannot
be interrupted: its seconds are added up, and the load fails after the executable that exceeds the declared deadline.
"""

from __future__ import annotations

import math

from .errors import BuildDeadlineExceeded, InvalidArgument
from .fork import new_lock
from .policy import Policy

#: the default deadline of a program that is not trusted: seconds for any program, more for each KiB of its code, and
#: the most that these come to
BASE_SECONDS, SECONDS_PER_KIB, MAX_SECONDS = 10.0, 0.1, 300.0


class BuildBudget:
    """The seconds that the helper process may spend on all executables of one load. Thread-safe.

    `deadline`: seconds above 0. None is the default, which grows with the code that is built; `math.inf` builds without
    a helper. Raises InvalidArgument for other values.
    """

    def __init__(self, deadline: float | None = None) -> None:
        if deadline is not None and not deadline > 0:
            raise InvalidArgument(f"a build deadline of {deadline} s is not above 0")
        self.deadline = deadline
        self.declared: float | None = None  #: seconds that the module declares
        self._lock = new_lock()
        self._trusted: bytes | None = None
        self._bytes = 0
        self._spent = 0.0

    def needs_helper(self, policy: Policy, digest: bytes | None) -> bool:
        """Whether code of the module with this root digest is built in a helper first."""
        if self.deadline is not None:
            return self.deadline < math.inf
        if digest is not None and digest == self._trusted:  # looked up for an executable before
            return False
        if policy.builds_here(digest):
            self._trusted = digest
            return False
        return True

    @property
    def allowed(self) -> float:
        """Seconds for the code seen so far."""
        if self.deadline is not None:
            allowed = self.deadline
        else:
            allowed = min(BASE_SECONDS + SECONDS_PER_KIB * self._bytes / 1024, MAX_SECONDS)
        return allowed if self.declared is None else min(allowed, self.declared)

    def take(self, size: int) -> float:
        """Returns the seconds that are left for building `size` more bytes. Raises BuildDeadlineExceeded if none are
        left.
        """
        with self._lock:
            self._bytes += size
            left = self.allowed - self._spent
        if left <= 0:
            raise self.exceeded(size, 0)
        return left

    def spend(self, seconds: float) -> None:
        with self._lock:
            self._spent += seconds

    def count(self, size: int, seconds: float) -> None:
        """Add a build of `size` bytes in this process. Raises BuildDeadlineExceeded if the total exceeds the declared
        deadline.
        """
        if self.declared is None:
            return
        with self._lock:
            self._spent += seconds
            spent = self._spent
        if spent > self.declared:
            raise BuildDeadlineExceeded(
                f"building the module's device code took {spent:.3g} s with {size} bytes that were built last, longer "
                f"than the build deadline of {self.declared:.3g} s that the module declares (limits.build-deadline)"
            )

    def exceeded(self, size: int, seconds: float) -> BuildDeadlineExceeded:
        """Returns the error for a build of `size` bytes that was ended after `seconds`."""
        allowed = self.allowed
        advice = (
            "the module declares it (limits.build-deadline)"
            if allowed == self.declared
            else "if you know the module, give it longer (build_deadline=, --build-deadline=)"
        )
        return BuildDeadlineExceeded(
            f"building the module's device code took longer than its build deadline of {allowed:.3g} s: "
            f"{size} bytes were not done after {seconds:.3g} s; {advice}"
        )
