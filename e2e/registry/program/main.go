// SPDX-License-Identifier: Apache-2.0

// Command program is the registry of the Distribution project with what the tests
// need of it: the file system as its disk, passwords and tokens, TLS. It is a
// stand-in for the registries that the first step (fetch) and the third (store) of
// the flow source -> render -> store -> deliver -> apply -> observe -> report talk
// to. Its one argument is a configuration file of that project.
package main

import (
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
)

func main() {
	registry.RootCmd.SetArgs(append([]string{"serve"}, os.Args[1:]...))
	if err := registry.RootCmd.Execute(); err != nil {
		os.Exit(1)
	}
}
