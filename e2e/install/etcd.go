// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"path/filepath"

	"kumodo.io/convoy/e2e/harness"
)

// RunEtcd starts an etcd that is the hub's own, with its data and sockets in dir, and
// gives the endpoint for --etcd-servers. Started again with the same dir it goes on
// with what it has. It never waits for the disk, and it ends with the plane.
func RunEtcd(ctx context.Context, plane *harness.Plane, dir string) (process *harness.Process, endpoint string, err error) {
	bin, err := harness.Binaries(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("etcd of the hub: %w", err)
	}
	endpoint, peer := "unix://"+filepath.Join(dir, "e.sock"), "unix://"+filepath.Join(dir, "p.sock")
	process, err = plane.Run(ctx, harness.Program{
		Name: "etcd-of-the-hub", Path: bin.Path("etcd"),
		Args: []string{
			"--name=default", "--data-dir=" + filepath.Join(dir, "etcd"), "--listen-client-urls=" + endpoint, "--advertise-client-urls=" + endpoint,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
			"--log-level=warn", "--unsafe-no-fsync=true",
		},
	})
	if err != nil {
		return nil, "", fmt.Errorf("etcd of the hub: %w", err)
	}
	return process, endpoint, nil
}
