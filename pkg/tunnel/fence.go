// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// FenceOf is the digest of an inventory that a remove order carries as its fence: over
// group, kind, namespace, name and UID of each entry, whatever their order. Version,
// wave, health and the like are no part of it: they change while the objects stay the
// same. An inventory without entries has a fence too; no inventory has the empty one.
func FenceOf(entries []InventoryEntry) string {
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = string(pae("", []byte(e.Group), []byte(e.Kind), []byte(e.Namespace), []byte(e.Name), []byte(e.UID)))
	}
	slices.SortFunc(lines, strings.Compare)
	h := sha256.New()
	for _, line := range lines {
		fmt.Fprintf(h, "%d %s\n", len(line), line)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
