// SPDX-License-Identifier: Apache-2.0

// Package keyset is the form in which a hub keeps its keys: five Secrets, each with
// a current key and those that it had before and still accepts. It makes, reads,
// rotates and retires them, as maps of fields, and knows neither Secrets nor files.
// It stands beside the flow: the hub loads its keyring from it, and the kubectl
// plugin rotates, backs up and restores with it.
package keyset
