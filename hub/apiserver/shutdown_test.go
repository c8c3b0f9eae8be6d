// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

func TestWatchesDoNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	var began time.Time
	ended := make(chan struct{})
	t.Run("a server and somebody who watches on", func(t *testing.T) {
		s := apiservertest.Start(t)
		w, err := dynamicClient(t, s).Resource(userKinds["Release"].resource).Watch(context.WithoutCancel(t.Context()), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(ended)
			for {
				if _, more := <-w.ResultChan(); !more {
					return
				}
			}
		}()
		t.Cleanup(func() { began = time.Now() }) // runs first, then the server ends
	})
	took := time.Since(began)
	<-ended
	t.Logf("ended after %s", took)
	// As long as the library lets a request go on: no watch was waited for.
	if took >= time.Minute {
		t.Errorf("the end took %s", took)
	}
}
