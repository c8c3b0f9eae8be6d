// SPDX-License-Identifier: Apache-2.0

// Package webhook hears sources tell of changes: it stands beside the first step of
// the flow source -> render -> store -> deliver -> apply -> observe -> report.
//
// A call is a hint and no more: the source is asked again, as it would be at its
// interval. So nothing of a body is parsed. It is counted, run through the HMAC while
// it is read, and thrown away; what decides is the size, and the signature, compared
// in constant time. Whoever cannot sign is told the same, whether the source exists,
// has a webhook or has another key.
package webhook
