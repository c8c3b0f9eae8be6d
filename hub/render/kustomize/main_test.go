// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import "slices"

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
