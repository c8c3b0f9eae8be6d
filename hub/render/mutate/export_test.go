// SPDX-License-Identifier: Apache-2.0

package mutate

// FunctionNames are those that a template may call by name.
func FunctionNames() map[string]bool {
	names := map[string]bool{}
	for name := range (&run{}).functions() {
		names[name] = true
	}
	return names
}
