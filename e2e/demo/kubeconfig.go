// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kumodo.io/convoy/e2e/harness"
)

// writeKubeconfig writes one file with a context for each plane, named like it.
func writeKubeconfig(path string, planes []*harness.Plane) error {
	all := clientcmdapi.NewConfig()
	for _, plane := range planes {
		one, err := clientcmd.LoadFromFile(plane.Kubeconfig())
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", plane.Name(), err)
		}
		if err := clientcmdapi.FlattenConfig(one); err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", plane.Name(), err)
		}
		current := one.Contexts[one.CurrentContext]
		all.Clusters[plane.Name()] = one.Clusters[current.Cluster]
		all.AuthInfos[plane.Name()] = one.AuthInfos[current.AuthInfo]
		all.Contexts[plane.Name()] = &clientcmdapi.Context{Cluster: plane.Name(), AuthInfo: plane.Name()}
	}
	all.CurrentContext = planes[0].Name()
	if err := clientcmd.WriteToFile(*all, path); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// programPath is where kubectl, of the version of the planes, and the plugin are.
func programPath(dir string) string {
	root := filepath.Dir(dir)
	return filepath.Join(root, ".kube", "bin") + ":" + filepath.Join(root, "bin")
}
