// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"context"
	"testing"

	"kumodo.io/convoy/e2e/install"
)

// This is the last one of the package: agents come back after half a minute only.
func TestAHubOnAnExternalEtcdComesBackWithWhatItKnew(t *testing.T) {
	ctx := deadline(t)
	host := world.hub.Plane
	before, err := host.Kubectl(ctx, "-n", team, "get", "cluster", edge, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	old := world.hub.Pod.Name()
	if _, err := host.Kubectl(ctx, "-n", install.HubNamespace, "delete", "pod", old.Name); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "another pod runs", func(context.Context) (bool, error) {
		return world.hub.Pod.Name() != old && world.hub.Pod.PID() != 0, nil
	})
	if err := world.hub.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if err := world.hub.WaitServed(ctx); err != nil {
		t.Fatal(err)
	}
	var after string
	eventually(ctx, t, "the Cluster is read", func(ctx context.Context) (bool, error) {
		after, err = host.Kubectl(ctx, "-n", team, "get", "cluster", edge, "-o", "jsonpath={.metadata.uid}")
		return err == nil, nil
	})
	if after != before {
		t.Errorf("the Cluster has UID %s, had %s", after, before)
	}
	if err := world.hub.WaitCluster(ctx, team, edge); err != nil {
		t.Error(err)
	}
}
