// SPDX-License-Identifier: Apache-2.0

// Package keyring holds the hub's five keys: hub CA, order key, sealing key, MAC
// key and serving CA. They are made at the first start and kept in Secrets of the
// host cluster, or in files of the data directory without one; never in etcd. It
// stands beside the flow: render masks and seals with them, deliver signs, the
// gateway certifies agents, the API server is served under them.
package keyring
