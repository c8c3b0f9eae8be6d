// SPDX-License-Identifier: Apache-2.0

// Package oci is the backend of the render store that stands on an OCI registry: the
// third step of the flow source -> render -> store -> deliver -> apply -> observe ->
// report.
//
// Each blob is the one layer of an artifact of type application/vnd.convoy.render.v1
// under a tag of its own:
//
//	objects-<hex>   an objects layer, JSON lines; <hex> is its digest
//	sealed-<hex>    a sealed layer, encrypted; <hex> is the digest of what is in it
//	aside-...       torn blobs, for a person to look at
//
// so that any client of registries lists and pulls what the hub has made. When a blob
// was last put stands in its manifest. A blob that is put again gets a new manifest
// under the same tag, and what is taken away is taken away by the digest of its
// manifest: a blob that somebody puts at that moment stays.
//
// Where a registry forbids to delete, the tag is put on a manifest that says that the
// blob is gone; the bytes stay, and that is counted.
package oci
