"""Speed, as ratios to a peer or to the raw limit in the same run. `make bench` runs them all."""
