"""The quorum in a world where time, network, disks and dice come from one seed.

The real core, driver, store and wire codec run; only what takes time is simulated. After every
event the rules of docs/INVARIANTS.md are checked, and the same seed gives the same run. To read it:

    world       one run: a phase in which all may break, one in which it must heal
    schedule    virtual time, and the clock that each node believes in
    network     links that lose, delay, repeat, hold and cut
    node        one machine: the real driver and store on a model disk, and its deaths
    cluster     the nodes and what surrounds them
    options     which faults a seed gets: a swarm
    faults      what goes wrong; with damage, snapshots, strangers
    operators   who changes the voters; atlas: what the quorum can still survive
    clients     who proposes and reads, and what they were told (M1 to M4)
    ledger      every batch that was ever seen, and what was committed
    checker     the rules Q1 to Q15
    liveness    the rules V1 to V4
    sightings   rare states that must have been reached

    runner, cli, report            many seeds, shrinking, what people read
    mutants, patching, hunting     mistakes that the simulator must notice

It knows what a quorum is from `node` on; schedule, network, trace and options do not.
"""
