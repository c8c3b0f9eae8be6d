// SPDX-License-Identifier: Apache-2.0

// Package openapi holds the generated OpenAPI definitions of the kinds that the
// hub serves. hub/apiserver publishes them, before the flow begins: kubectl explain,
// server-side apply and managedFields stand on them.
package openapi
