"""The timeouts of a profile, on which the targets of drills stand (seconds)."""

from dataclasses import dataclass

from kraftlog.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Timing:
    profile: str
    fetch_timeout: float
    election_timeout: float
    session: float
    replica_lag: float
    metadata_lag: float
    converge: float
    """Full ISR and equal metadata within so long after a heal."""

    def of(self, name: str) -> float:
        """The timeout to which a target is related."""
        known = {
            "fetch timeout": self.fetch_timeout,
            "session": self.session,
            "replica lag": self.replica_lag,
            "metadata lag": self.metadata_lag,
        }
        if name not in known:
            raise ConfigError(f"{name!r} is no timeout", hint=f"there are {', '.join(known)}")
        return known[name]


TIMINGS = {
    "fast": Timing("fast", 0.6, 0.3, 1.5, 2.0, 4.5, 10.0),
    "kafka": Timing("kafka", 2.0, 1.0, 9.0, 30.0, 27.0, 45.0),
}


def timing_of(profile: str) -> Timing:
    if profile not in TIMINGS:
        raise ConfigError(f"there is no profile {profile!r}", hint=f"use {' or '.join(TIMINGS)}")
    return TIMINGS[profile]
