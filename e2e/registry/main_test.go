// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/registry"
)

// Three registries serve all tests: one that lets delete, one that does not, and one
// without TLS.
var deleting, keeping, plain *registry.Registry

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	supervisor, err := harness.NewSupervisor(ctx, "")
	if err != nil {
		return fail(err)
	}
	defer func() {
		if err := supervisor.Close(); err != nil {
			code = fail(err)
		}
	}()
	if deleting, err = registry.Start(ctx, supervisor, supervisor.Dir(), registry.Options{Name: "deleting"}); err != nil {
		return fail(err)
	}
	if keeping, err = registry.Start(ctx, supervisor, supervisor.Dir(), registry.Options{Name: "keeping", KeepAll: true}); err != nil {
		return fail(err)
	}
	if plain, err = registry.Start(ctx, supervisor, supervisor.Dir(), registry.Options{Name: "plain", Plain: true}); err != nil {
		return fail(err)
	}
	return m.Run()
}
