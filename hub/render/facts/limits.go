// SPDX-License-Identifier: Apache-2.0

package facts

// maxReads is how many names Reads gives; the classes with the most are named whole
// beyond it.
const maxReads = 96
