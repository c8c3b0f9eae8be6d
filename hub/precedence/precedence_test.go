// SPDX-License-Identifier: Apache-2.0

package precedence

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

type releases []*v1alpha1.Release

func (r releases) Release(key types.NamespacedName) (*v1alpha1.Release, bool) {
	for _, one := range r {
		if one.Name == key.Name {
			return one, true
		}
	}
	return nil, false
}

func (r releases) ReleasesByCluster(cluster types.NamespacedName) []*v1alpha1.Release {
	var out []*v1alpha1.Release
	for _, one := range r {
		if one.Spec.ClusterRef.Name == cluster.Name {
			out = append(out, one)
		}
	}
	return out
}

func release(name, cluster string, wave int32, dependsOn ...string) *v1alpha1.Release {
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	r.Spec.ClusterRef.Name, r.Spec.ClusterWave = cluster, wave
	for _, on := range dependsOn {
		r.Spec.DependsOn = append(r.Spec.DependsOn, v1alpha1.ReleaseReference{Name: on})
	}
	return r
}

func TestACircleIsFoundAndNamed(t *testing.T) {
	gone := release("b", "edge", 0, "a")
	gone.DeletionTimestamp = &metav1.Time{}
	for name, c := range map[string]struct {
		start  *v1alpha1.Release
		others releases
		want   string
	}{
		"a Release that depends on itself": {release("a", "edge", 0, "a"), nil, "a dependsOn a"},
		"two that depend on each other":    {release("a", "edge", 0, "b"), releases{release("b", "far", 0, "a")}, "a dependsOn b, b dependsOn a"},
		"three, over a branch that leads nowhere": {
			release("a", "edge", 0, "x", "b"), releases{release("x", "edge", 0), release("b", "edge", 0, "c"), release("c", "edge", 0, "a")},
			"a dependsOn b, b dependsOn c, c dependsOn a",
		},
		"a dependency of a higher wave": {release("a", "edge", 0, "b"), releases{release("b", "edge", 1)}, "a dependsOn b, b waits for the clusterWave of a"},
		"a wave over another cluster": {
			release("a", "edge", 5), releases{release("b", "edge", 0, "c"), release("c", "far", 0, "a")},
			"a waits for the clusterWave of b, b dependsOn c, c dependsOn a",
		},
		"no circle: a chain":                              {release("a", "edge", 0, "b"), releases{release("b", "edge", 0, "c"), release("c", "edge", 0)}, ""},
		"no circle: a diamond":                            {release("a", "edge", 0, "b", "c"), releases{release("b", "edge", 0, "d"), release("c", "edge", 0, "d"), release("d", "edge", 0)}, ""},
		"no circle: waves that agree with the dependency": {release("a", "edge", 1, "b"), releases{release("b", "edge", 0)}, ""},
		"no circle: a higher wave of another cluster":     {release("a", "edge", 0, "b"), releases{release("b", "far", 1)}, ""},
		"no circle of its own: others have one":           {release("a", "edge", 0, "b"), releases{release("b", "edge", 0, "c"), release("c", "edge", 0, "b")}, ""},
		"no circle: what is missing comes before nothing": {release("a", "edge", 0, "b"), nil, ""},
		"no circle: what is being deleted waits no more":  {release("a", "edge", 0, "b"), releases{gone}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			// What is stored under the name of the one that is asked about does not count.
			stored := append(releases{release(c.start.Name, c.start.Spec.ClusterRef.Name, -1, "b")}, c.others...)
			if got := Circle(c.start, stored); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestALongChainEndsTheSearch(t *testing.T) {
	var chain releases
	for i := range 3 * maxSeen {
		chain = append(chain, release(fmt.Sprint(i), "edge", 0, fmt.Sprint(i+1)))
	}
	if got := Circle(release("a", "edge", 0, "0"), chain[:maxSeen+10]); got != "" {
		t.Errorf("%q, want none", got)
	}
}
