// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Behind names those of the Releases that an agent holds, by UID, of which this
// hub has an older order than it does, or neither an order nor a last order.
func (d *Deliverer) Behind(clusterUID string, have map[string]int64) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sets[types.UID(clusterUID)]
	var behind []string
	for release, sequence := range have {
		var newest int64
		if t := d.buried[types.UID(release)]; t != nil && string(t.ClusterUID) == clusterUID {
			newest = t.Sequence
		} else if s != nil && s.orders[types.UID(release)] != nil {
			newest = s.orders[types.UID(release)].Sequence
		}
		if sequence > newest {
			behind = append(behind, release)
		}
	}
	slices.Sort(behind)
	return behind
}
