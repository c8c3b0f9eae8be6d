// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

func TestAClusterIsRememberedAsLongAsItExists(t *testing.T) {
	of := func(uid types.UID) *v1alpha1.Cluster {
		return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge", UID: uid}}
	}
	var s seen
	s.clusterChanged(nil, of("a"))
	if s.has("a") {
		t.Error("one that was never here is remembered")
	}
	s.add("a")
	s.clusterChanged(of("a"), of("a"))
	if !s.has("a") {
		t.Error("one that has changed is forgotten")
	}
	s.clusterChanged(of("a"), of("b"))
	if s.has("a") {
		t.Error("one whose name another has is remembered")
	}
	s.add("b")
	s.clusterChanged(of("b"), nil)
	if s.has("b") || len(s.uids) != 0 {
		t.Error("one that was deleted is remembered")
	}
}
