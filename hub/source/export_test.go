// SPDX-License-Identifier: Apache-2.0

package source

// MaxLooksPerTenant and Patience for tests.
const MaxLooksPerTenant = maxLooksPerTenant

var Patience = patience
