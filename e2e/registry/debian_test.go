// SPDX-License-Identifier: Apache-2.0

//go:build debian

package registry_test

import (
	"os/exec"
	"testing"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/registry"
	"kumodo.io/convoy/hub/store"
	"kumodo.io/convoy/hub/store/storetest"
)

func TestTheStoreOnDebiansRegistryConforms(t *testing.T) {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Fatal(err)
	}
	supervisor, err := harness.NewSupervisor(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := supervisor.Close(); err != nil {
			t.Errorf("close supervisor: %v", err)
		}
	})
	server, err := registry.Start(t.Context(), supervisor, t.TempDir(), registry.Options{Name: "debian", Program: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("objects layers", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Store {
			backend, _ := open(t, server, nil)
			return store.NewPlain(backend)
		})
	})
	t.Run("sealed layers", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Store {
			backend, _ := open(t, server, nil)
			return sealer(backend)
		})
	})
}
