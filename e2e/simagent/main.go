// SPDX-License-Identifier: Apache-2.0

// Command simagent runs many simulated agents in one process.
package main

func main() {}
