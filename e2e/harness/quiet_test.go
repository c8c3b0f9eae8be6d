// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestQuietIsWhenNothingIsWritten(t *testing.T) {
	kind := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	object := &unstructured.Unstructured{}
	object.SetName("one")
	object.SetNamespace("team")
	// serve gives a client whose watches show so many writes, one each.
	serve := func(writes int) *fake.FakeDynamicClient {
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{kind: "ConfigMapList"})
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			if writes > 0 {
				w.Modify(object)
				writes--
			}
			return true, w, nil
		})
		return client
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const quiet = 50 * time.Millisecond
	if err := HoldsStill(ctx, serve(0), quiet, "team", kind); err != nil {
		t.Errorf("nothing was written: %v", err)
	}
	if err := HoldsStill(ctx, serve(1), 10*time.Second, "team", kind); !errors.Is(err, ErrNotQuiet) {
		t.Errorf("something was written: %v", err)
	}
	if err := Settled(ctx, serve(3), quiet, "team", kind); err != nil {
		t.Errorf("three writes, and no more: %v", err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if err := HoldsStill(ended, serve(0), time.Minute, "team", kind); !errors.Is(err, context.Canceled) {
		t.Errorf("told to end: %v", err)
	}
}
