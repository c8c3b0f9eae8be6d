// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
)

const (
	// labelHub on the namespace of the state names the hub whose engine writes there:
	// there is one writer.
	labelHub = "convoy.kumodo.io/hub"
	// agentIdentity is the Secret that an agent keeps in its namespace.
	agentIdentity = "convoy-agent-identity"
)

// prepare makes the namespace of the state, or sees to it that nobody else works
// there.
func (c *cell) prepare(ctx context.Context, mode v1alpha1.ConnectionMode, name string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	config := rest.CopyConfig(c.conn.config)
	config.QPS, config.ContentType = -1, "application/json"
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the cluster: %w", err)
	}
	hub := c.manager.opts.HubID
	found, err := client.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{labelHub: hub, "app.kubernetes.io/part-of": "convoy"},
		}}, metav1.CreateOptions{})
		if err == nil || !apierrors.IsAlreadyExists(err) {
			return c.made(ctx, mode, name, err)
		}
		found, err = client.Namespaces().Get(ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return c.startFault(ctx, mode, err, fmt.Sprintf("namespace %s of the engine's state cannot be read", name))
	}
	if found.DeletionTimestamp != nil {
		return away(nil, "namespace %s of the engine's state is being deleted", name)
	}
	switch owner := found.Labels[labelHub]; {
	case owner != "" && owner != hub:
		return conflict("another hub (%s) works on that cluster: its label %s is on namespace %s", clipWord(owner), labelHub, name)
	case owner == hub:
		return nil
	}
	_, err = client.Secrets(name).Get(ctx, agentIdentity, metav1.GetOptions{})
	switch {
	case err == nil:
		return conflict("an agent is installed in namespace %s of that cluster: remove it, or use connectionMode agent", name)
	case !apierrors.IsNotFound(err):
		return c.startFault(ctx, mode, err, fmt.Sprintf("namespace %s of the engine's state cannot be read", name))
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{labelHub: hub}}})
	if err != nil {
		return fmt.Errorf("encode label: %w", err)
	}
	_, err = client.Namespaces().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	return c.made(ctx, mode, name, err)
}

func (c *cell) made(ctx context.Context, mode v1alpha1.ConnectionMode, name string, err error) error {
	if err == nil {
		return nil
	}
	return c.startFault(ctx, mode, err, fmt.Sprintf("namespace %s of the engine's state cannot be made", name))
}
