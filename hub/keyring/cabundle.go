// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// APIServiceResource is what the dynamic client is asked for.
func APIServiceResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
}

// EnsureCABundle makes the host trust the serving CA for the named APIService. It
// writes only what is not so yet. An APIService that is not there gives the API's
// NotFound.
func EnsureCABundle(ctx context.Context, services APIServices, name string, caPEM []byte) (changed bool, err error) {
	got, err := services.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get APIService %s: %w", name, err)
	}
	// A value of another type is as wrong as another value.
	bundle, _, err := unstructured.NestedString(got.Object, "spec", "caBundle")
	if err == nil {
		current, err := base64.StdEncoding.DecodeString(bundle)
		if err == nil && bytes.Equal(current, caPEM) {
			return false, nil
		}
	}
	if err := unstructured.SetNestedField(got.Object, base64.StdEncoding.EncodeToString(caPEM), "spec", "caBundle"); err != nil {
		return false, fmt.Errorf("set caBundle of APIService %s: %w", name, err)
	}
	unstructured.RemoveNestedField(got.Object, "spec", "insecureSkipTLSVerify")
	// Under the resourceVersion just read: a change in between is a conflict.
	if _, err := services.Update(ctx, got, metav1.UpdateOptions{FieldManager: v1alpha1.FieldManager}); err != nil {
		return false, fmt.Errorf("write caBundle of APIService %s: %w", name, err)
	}
	return true, nil
}

// KeepCABundles does so for all named APIServices until ctx ends: soon after one
// appears, and again should somebody change it. It returns nil.
func KeepCABundles(ctx context.Context, services APIServices, names []string, caPEM []byte, clk clock.Clock) error {
	log := logr.FromContextOrDiscard(ctx)
	said := map[string]string{}
	for {
		wait := keepInterval
		for _, name := range names {
			changed, err := EnsureCABundle(ctx, services, name, caPEM)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				wait = missingInterval
				if said[name] == err.Error() {
					continue // once is enough
				}
				said[name] = err.Error()
				if apierrors.IsNotFound(err) {
					log.Info("APIService is not there yet", "apiService", name)
				} else {
					log.Error(err, "could not write the caBundle", "apiService", name)
				}
			default:
				delete(said, name)
				if changed {
					log.Info("wrote the caBundle", "apiService", name)
				}
			}
		}
		if !sleep(ctx, clk, wait) {
			return nil
		}
	}
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, clk clock.Clock, d time.Duration) bool {
	t := clk.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C():
		return true
	}
}
