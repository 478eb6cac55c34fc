"""Data in shards on the workers of a Dask cluster."""

from moerank.cluster.dask_cluster import DaskCluster as DaskCluster
