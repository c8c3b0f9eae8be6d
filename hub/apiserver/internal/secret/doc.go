// SPDX-License-Identifier: Apache-2.0

// Package secret keeps the hub from being used to read Secrets for people who may
// not: whoever writes a reference must be allowed to get that Secret. It stands
// before the flow, where users' objects come in. The storage of a kind that
// refers to Secrets asks before its strategy, at create and at update, in a dry
// run too; the strategy then records the references as checked, and the hub reads
// no Secret that is not recorded.
package secret
