// SPDX-License-Identifier: Apache-2.0

// Package shard says which shard an object belongs to. The API server writes it
// as a label on every write of a Cluster, Release or source object; a Release
// and its inventory take their Cluster's, so that the waves of one cluster are
// never split between two hubs. It stands before the flow.
package shard

import (
	"hash/fnv"
	"strconv"
)

// Max is the largest number of shards.
const Max = 1024

// Of gives the label value, "0" to shards-1, of what belongs to the named
// Cluster (or, for a source, of the source of that name). Fewer than one shard
// counts as one.
func Of(namespace, name string, shards int) string {
	if shards <= 1 {
		return "0"
	}
	h := fnv.New32a()
	h.Write([]byte(namespace + "/" + name))
	return strconv.FormatUint(uint64(h.Sum32())%uint64(shards), 10)
}
