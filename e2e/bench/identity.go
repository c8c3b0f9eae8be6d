// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/agent/link"
	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/install"
	"kumodo.io/convoy/hub/keyring"
	"kumodo.io/convoy/pkg/tunnel"
)

// writers of objects at once.
const writers = 16

func clusterName(i int) string { return fmt.Sprintf("sim-%05d", i) }

// makeClusters makes the Clusters of the fleet and, with the hub's own keys, for
// each what its agent and the hub keep of a join. The joins themselves are left
// out: the hub lets a hundred a second in.
func (f *fleet) makeClusters(ctx context.Context) error {
	keys, err := keyring.Load(ctx, keyring.NewFileVault(filepath.Join(f.data(), "keys")), clock.RealClock{})
	if err != nil {
		return err
	}
	f.identities = make([]*link.Identity, f.opts.agents)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range f.identities {
		group.Go(func() error {
			id, err := f.makeCluster(ctx, keys, clusterName(i))
			if err != nil {
				return fmt.Errorf("cluster %d: %w", i, err)
			}
			f.identities[i] = id
			return nil
		})
	}
	return group.Wait()
}

func (f *fleet) makeCluster(ctx context.Context, keys *keyring.Keyring, name string) (*link.Identity, error) {
	clusters := f.api.Resource(install.Clusters).Namespace(fleetNamespace)
	made, err := clusters.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": corev1alpha1.SchemeGroupVersion.String(), "kind": "Cluster", "metadata": map[string]any{"name": name},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	bound, seed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	client, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(client.Public())
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(client)
	if err != nil {
		return nil, err
	}
	uid := string(made.GetUID())
	issuer := tunnel.Issuer{Hub: keys.HubID, CA: keys.HubCA.Certificate, Signer: keys.HubCA.Signer}
	prepared, err := issuer.Prepare(tunnel.ClusterID{Namespace: fleetNamespace, Name: name, UID: uid}, tunnel.KeyID(bound), public, time.Now())
	if err != nil {
		return nil, err
	}
	certificate, err := issuer.Sign(prepared)
	if err != nil {
		return nil, err
	}
	agent := map[string]any{
		"boundKey": base64.StdEncoding.EncodeToString(bound), "joinedAt": time.Now().UTC().Format(time.RFC3339),
		"certificateExpiresAt": prepared.NotAfter.UTC().Format(time.RFC3339), "certificateSerial": prepared.Serial,
	}
	for {
		if err := unstructured.SetNestedMap(made.Object, agent, "status", "agent"); err != nil {
			return nil, err
		}
		_, err := clusters.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsConflict(err) { // with the controller, which says that nobody has joined
			return nil, err
		}
		if made, err = clusters.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return nil, err
		}
	}
	return &link.Identity{
		Hub: keys.HubID, ClusterUID: uid, GatewayURL: "wss://" + loopback(f.gatewayPort), CAPin: keys.GatewayCA().Pin(),
		HubCA:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: keys.HubCA.Certificate.Raw}),
		OrderKeys: [][]byte{keys.OrderKey.Public}, BoundKey: seed.Seed(), ClientKey: private, Certificate: certificate, HubTime: time.Now(),
	}, nil
}
