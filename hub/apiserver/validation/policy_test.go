// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func TestPoliciesOfReleases(t *testing.T) {
	type spec = corev1alpha1.ReleaseSpec
	on := func(names ...string) func(*spec) {
		return func(s *spec) {
			for _, name := range names {
				s.DependsOn = append(s.DependsOn, corev1alpha1.ReleaseReference{Name: name})
			}
		}
	}
	ignore := func(rule corev1alpha1.DriftIgnore) func(*spec) {
		return func(s *spec) { s.Drift.Ignore = []corev1alpha1.DriftIgnore{rule} }
	}
	pointer := func(text string) func(*spec) {
		return ignore(corev1alpha1.DriftIgnore{Kind: "Deployment", Pointers: []string{text}})
	}
	pause := func(low, high time.Duration) func(*spec) {
		return func(s *spec) {
			s.SyncPolicy.Retry = corev1alpha1.RetryPolicy{Minimum: &metav1.Duration{Duration: low}, Maximum: &metav1.Duration{Duration: high}}
		}
	}
	const dependency, account, rule = "spec.dependsOn[0].name", "spec.serviceAccountName", "spec.drift.ignore[0]"
	for name, c := range map[string]struct {
		change func(*spec)
		want   []string
	}{
		"a wave":                               {func(s *spec) { s.ClusterWave = -1000 }, nil},
		"a wave beyond the last":               {func(s *spec) { s.ClusterWave = 1001 }, []string{"spec.clusterWave"}},
		"dependencies":                         {on("base", "db"), nil},
		"a dependency without a name":          {on(""), []string{dependency}},
		"a dependency in another namespace":    {on("other/base"), []string{dependency}},
		"the same dependency twice":            {on("base", "base"), []string{"spec.dependsOn[1].name"}},
		"too many dependencies":                {on(strings.Split("abcdefghijklmnopq", "")...), []string{"spec.dependsOn"}},
		"an account":                           {func(s *spec) { s.ServiceAccountName = "deployer" }, nil},
		"an account of another namespace":      {func(s *spec) { s.ServiceAccountName = "ops:deployer" }, nil},
		"an account that is a whole user name": {func(s *spec) { s.ServiceAccountName = "system:serviceaccount:ops:deployer" }, []string{account}},
		"an account without a namespace":       {func(s *spec) { s.ServiceAccountName = ":deployer" }, []string{account}},
		"a pointer":                            {pointer("/spec/replicas"), nil},
		"a pointer into lists and escaped":     {pointer("/spec/containers/*/x~1y~0z"), nil},
		"a pointer without a slash":            {pointer("spec.replicas"), []string{rule + ".pointers[0]"}},
		"a pointer with a loose escape":        {pointer("/a~2"), []string{rule + ".pointers[0]"}},
		"a pointer to the name":                {pointer("/metadata/name"), []string{rule + ".pointers[0]"}},
		"a pointer to the namespace":           {pointer("/metadata/namespace"), []string{rule + ".pointers[0]"}},
		"a pointer to the kind":                {pointer("/kind"), []string{rule + ".pointers[0]"}},
		"a pointer to the version":             {pointer("/apiVersion"), []string{rule + ".pointers[0]"}},
		"a pointer to the status":              {pointer("/status"), []string{rule + ".pointers[0]"}},
		"a pointer into the status":            {pointer("/status/conditions/0"), []string{rule + ".pointers[0]"}},
		"a pointer to a field called status":   {pointer("/spec/status"), nil},
		"a pointer to our label":               {pointer("/metadata/labels/convoy.kumodo.io~1managed"), []string{rule + ".pointers[0]"}},
		"a pointer to our annotation":          {pointer("/metadata/annotations/convoy.kumodo.io~1owner"), []string{rule + ".pointers[0]"}},
		"a pointer to another annotation":      {pointer("/metadata/annotations/example.test~1owner"), nil},
		"a pointer to all labels":              {pointer("/metadata/labels"), nil},
		"a pointer with two stars":             {pointer("/spec/**/image"), []string{rule + ".pointers[0]"}},
		"a pointer with NUL":                   {pointer("/spec/a\x00b"), []string{rule + ".pointers[0]"}},
		"a pointer to a negative index":        {pointer("/spec/containers/-1/image"), []string{rule + ".pointers[0]"}},
		"a pointer to a key like a number":     {pointer("/data/-1"), nil},
		"a pointer to a key with a dash":       {pointer("/data/-x"), nil},
		"a whole kind":                         {ignore(corev1alpha1.DriftIgnore{Kind: "HorizontalPodAutoscaler"}), nil},
		"everything":                           {ignore(corev1alpha1.DriftIgnore{Namespace: "team"}), []string{rule + ".kind"}},
		"a manager, of any object":             {ignore(corev1alpha1.DriftIgnore{Managers: []string{"vpa"}}), nil},
		"our own manager":                      {ignore(corev1alpha1.DriftIgnore{Managers: []string{"convoy"}}), []string{rule + ".managers[0]"}},
		"an expression":                        {ignore(corev1alpha1.DriftIgnore{Kind: "A", When: "has(object.spec.paused) && object.spec.paused"}), nil},
		"an expression that is none":           {ignore(corev1alpha1.DriftIgnore{Kind: "A", When: "object.spec ="}), []string{rule + ".when"}},
		"an expression over what is not there": {ignore(corev1alpha1.DriftIgnore{Kind: "A", When: "cluster.region == 'x'"}), []string{rule + ".when"}},
		"rule sets":                            {func(s *spec) { s.Health.RuleSets = []string{"db", "team.web"} }, nil},
		"a rule set twice":                     {func(s *spec) { s.Health.RuleSets = []string{"db", "db"} }, []string{"spec.health.ruleSets[1]"}},
		"kinds that a prune may delete":        {func(s *spec) { s.SyncPolicy.Prune.Allowed = []string{"Namespace", "PersistentVolumeClaim"} }, nil},
		"kinds of volumes and snapshots": {func(s *spec) {
			s.SyncPolicy.Prune.Allowed = []string{"PersistentVolume", "VolumeSnapshot", "VolumeSnapshotContent"}
		}, nil},
		"a kind that is not guarded":             {func(s *spec) { s.SyncPolicy.Prune.Allowed = []string{"Deployment"} }, []string{"spec.syncPolicy.prune.allowed[0]"}},
		"a propagation":                          {func(s *spec) { s.SyncPolicy.Prune.Propagation = "Foreground" }, nil},
		"a propagation that is none":             {func(s *spec) { s.SyncPolicy.Prune.Propagation = "Slow" }, []string{"spec.syncPolicy.prune.propagation"}},
		"a budget of nothing":                    {func(s *spec) { s.SyncPolicy.DeletionBudget = &corev1alpha1.DeletionBudget{Count: ptr.To[int32](0)} }, nil},
		"a negative budget":                      {func(s *spec) { s.SyncPolicy.DeletionBudget = &corev1alpha1.DeletionBudget{Count: ptr.To[int32](-1)} }, []string{"spec.syncPolicy.deletionBudget.count"}},
		"more than all":                          {func(s *spec) { s.SyncPolicy.DeletionBudget = &corev1alpha1.DeletionBudget{Percent: ptr.To[int32](101)} }, []string{"spec.syncPolicy.deletionBudget.percent"}},
		"no retry":                               {func(s *spec) { s.SyncPolicy.Retry.Limit = ptr.To[int32](0) }, nil},
		"a negative limit":                       {func(s *spec) { s.SyncPolicy.Retry.Limit = ptr.To[int32](-1) }, []string{"spec.syncPolicy.retry.limit"}},
		"a pause that is too short":              {pause(time.Millisecond, time.Minute), []string{"spec.syncPolicy.retry.minimum"}},
		"a pause that shrinks":                   {pause(time.Minute, time.Second), []string{"spec.syncPolicy.retry.maximum"}},
		"a first pause longer than the last one": {func(s *spec) { s.SyncPolicy.Retry.Maximum = &metav1.Duration{Duration: time.Second} }, []string{"spec.syncPolicy.retry.maximum"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &corev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			r.Spec.ClusterRef.Name = "edge-1"
			r.Spec.Source = corev1alpha1.SourceReference{Kind: "GitRepository", Name: "app"}
			corev1alpha1.SetReleaseDefaults(r)
			c.change(&r.Spec)
			check(t, Release(r), c.want...)
		})
	}
}

func TestWhatAClusterPermits(t *testing.T) {
	for name, c := range map[string]struct {
		allowed corev1alpha1.AllowedPolicy
		want    []string
	}{
		"empty lists permit nothing, and are good": {corev1alpha1.AllowedPolicy{TargetNamespaces: []string{}, ClusterScopedKinds: []string{}, ServiceAccounts: []string{}}, nil},
		"names and prefixes of namespaces":         {corev1alpha1.AllowedPolicy{TargetNamespaces: []string{"team", "team-*", "*"}}, nil},
		"a star in the middle":                     {corev1alpha1.AllowedPolicy{TargetNamespaces: []string{"te*m"}}, []string{"spec.allowed.targetNamespaces[0]"}},
		"a prefix that is no name":                 {corev1alpha1.AllowedPolicy{TargetNamespaces: []string{"Team-*"}}, []string{"spec.allowed.targetNamespaces[0]"}},
		"kinds":                                    {corev1alpha1.AllowedPolicy{ClusterScopedKinds: []string{"Namespace", "ClusterRole.rbac.authorization.k8s.io", "*"}}, nil},
		"a kind with a version":                    {corev1alpha1.AllowedPolicy{ClusterScopedKinds: []string{"rbac/v1/ClusterRole"}}, []string{"spec.allowed.clusterScopedKinds[0]"}},
		"accounts":                                 {corev1alpha1.AllowedPolicy{ServiceAccounts: []string{"team:deployer", "*:deployer", "team:*"}}, nil},
		"an account without a namespace":           {corev1alpha1.AllowedPolicy{ServiceAccounts: []string{"deployer"}}, []string{"spec.allowed.serviceAccounts[0]"}},
		"nothing where a name should be":           {corev1alpha1.AllowedPolicy{ServiceAccounts: []string{""}}, []string{"spec.allowed.serviceAccounts[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &corev1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
			corev1alpha1.SetClusterDefaults(cluster)
			cluster.Spec.Allowed = &c.allowed
			check(t, Cluster(cluster), c.want...)
		})
	}
}
