"""Clusters on this machine, for tests, drills and trying things out.

    from kraftlog.local import LocalCluster

    with LocalCluster(controllers=3, brokers=3) as cluster:
        print(cluster.bootstrap)
        cluster.kill("b1")

Every node is a process of its own.
"""

from kraftlog.local.cluster import LocalCluster
from kraftlog.local.process import NodeFailed

__all__ = ["LocalCluster", "NodeFailed"]
