// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"kumodo.io/convoy/hub/options"
)

func secretsOf(c *options.Config) (typedcorev1.SecretInterface, error) {
	client, err := kubernetes.NewForConfig(c.Host)
	if err != nil {
		return nil, fmt.Errorf("make host client: %w", err)
	}
	return client.CoreV1().Secrets(options.Namespace), nil
}
