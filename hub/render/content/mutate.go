// SPDX-License-Identifier: Apache-2.0

package content

// mutate applies the mutations.
func (r *renderer) mutate() error { return nil }
