// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

// fieldsOf lists the paths of what is wrong.
func fieldsOf(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Field)
	}
	return out
}

func check(t *testing.T, errs field.ErrorList, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, fieldsOf(errs)); diff != "" {
		t.Errorf("fields refused (-want +got):\n%s\n%v", diff, errs)
	}
}

func TestReleases(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1alpha1.Release)
		want   []string
	}{
		"the smallest one is good":             {func(*corev1alpha1.Release) {}, nil},
		"a path below is good":                 {func(r *corev1alpha1.Release) { r.Spec.Content.Path = "./apps/web/" }, nil},
		"a name with dots that is no step up":  {func(r *corev1alpha1.Release) { r.Spec.Content.Path = "a/..b/c.." }, nil},
		"a path that leaves the source":        {func(r *corev1alpha1.Release) { r.Spec.Content.Path = "a/../../b" }, []string{"spec.content.path"}},
		"an absolute path":                     {func(r *corev1alpha1.Release) { r.Spec.Content.Path = "/etc" }, []string{"spec.content.path"}},
		"a path with backslashes":              {func(r *corev1alpha1.Release) { r.Spec.Content.Path = `a\..\b` }, []string{"spec.content.path"}},
		"a path with a control character":      {func(r *corev1alpha1.Release) { r.Spec.Content.Path = "a\x00b" }, []string{"spec.content.path"}},
		"a path that is too long":              {func(r *corev1alpha1.Release) { r.Spec.Content.Path = strings.Repeat("a", 1025) }, []string{"spec.content.path"}},
		"a cluster whose name is no label":     {func(r *corev1alpha1.Release) { r.Spec.ClusterRef.Name = "edge.one" }, []string{"spec.clusterRef.name"}},
		"a revision that is a commit":          {func(r *corev1alpha1.Release) { r.Spec.Source.Revision = strings.Repeat("a", 40) }, nil},
		"a revision that is a branch":          {func(r *corev1alpha1.Release) { r.Spec.Source.Revision = "feature/x" }, nil},
		"a revision that looks like an option": {func(r *corev1alpha1.Release) { r.Spec.Source.Revision = "--upload-pack=x" }, []string{"spec.source.revision"}},
		"a revision with a range":              {func(r *corev1alpha1.Release) { r.Spec.Source.Revision = "a..b" }, []string{"spec.source.revision"}},
		"an interval of nine seconds":          {func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Interval.Duration = 9 * time.Second }, []string{"spec.syncPolicy.interval"}},
		"an interval of a day and a bit":       {func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Interval.Duration = 25 * time.Hour }, []string{"spec.syncPolicy.interval"}},
		"a negative timeout":                   {func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Timeout.Duration = -1 }, []string{"spec.syncPolicy.timeout"}},
		"a timeout of a second":                {func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Timeout.Duration = time.Second }, nil},
		"policies in small letters": {func(r *corev1alpha1.Release) {
			r.Spec.SyncPolicy.Conflicts, r.Spec.SyncPolicy.Immutable = "fail", "report"
		}, []string{"spec.syncPolicy.conflicts", "spec.syncPolicy.immutable"}},
		"a name that is no name":                   {func(r *corev1alpha1.Release) { r.Name = "Web" }, []string{"metadata.name"}},
		"a source of an unknown kind without name": {func(r *corev1alpha1.Release) { r.Spec.Source = corev1alpha1.SourceReference{Kind: "Folder"} }, []string{"spec.source.kind", "spec.source.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &corev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			r.Spec.ClusterRef.Name = "edge-1"
			r.Spec.Source = corev1alpha1.SourceReference{Kind: "GitRepository", Name: "app"}
			corev1alpha1.SetReleaseDefaults(r)
			c.change(r)
			check(t, Release(r), c.want...)
		})
	}
}

// dialled makes a good Cluster that the hub dials.
func dialled(c *corev1alpha1.Cluster) *corev1alpha1.AgentlessConnection {
	c.Spec.ConnectionMode = corev1alpha1.ConnectionModeAgentless
	c.Spec.Agentless = &corev1alpha1.AgentlessConnection{Server: "https://edge.example:6443", Auth: corev1alpha1.ClusterAuth{
		Type: "kubeconfig", Kubeconfig: &corev1alpha1.KubeconfigAuth{SecretRef: corev1alpha1.SecretKeyReference{Name: "edge", Key: "kubeconfig"}},
	}}
	return c.Spec.Agentless
}

func TestWhatOfAClusterAndAReleaseCannotChange(t *testing.T) {
	now := metav1.Now()
	old := &corev1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge-1", ResourceVersion: "1"}}
	dialled(old)
	t.Run("the mode of a Cluster", func(t *testing.T) {
		next := old.DeepCopy()
		next.Spec.ConnectionMode, next.Spec.Agentless = corev1alpha1.ConnectionModeAgent, nil
		check(t, ClusterUpdate(next, old), "spec.connectionMode")
	})
	t.Run("the Secret of a Cluster can", func(t *testing.T) {
		next := old.DeepCopy()
		next.Spec.Agentless.Auth.Kubeconfig.SecretRef.Name = "other"
		check(t, ClusterUpdate(next, old))
	})
	t.Run("pruneReleases cannot be turned on while the Cluster is being deleted, only off", func(t *testing.T) {
		off, on := old.DeepCopy(), old.DeepCopy()
		off.DeletionTimestamp, on.DeletionTimestamp = &now, &now
		on.Spec.DeletionPolicy.PruneReleases = true
		check(t, ClusterUpdate(on, off), "spec.deletionPolicy.pruneReleases")
		check(t, ClusterUpdate(off, on))
	})
	t.Run("keepWorkloads cannot be turned off while the Release is being deleted, only on", func(t *testing.T) {
		off := &corev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "1", DeletionTimestamp: &now}}
		off.Spec.ClusterRef.Name = "edge-1"
		off.Spec.Source = corev1alpha1.SourceReference{Kind: "GitRepository", Name: "app"}
		corev1alpha1.SetReleaseDefaults(off)
		on := off.DeepCopy()
		on.Spec.DeletionPolicy.KeepWorkloads = true
		check(t, ReleaseUpdate(off, on), "spec.deletionPolicy.keepWorkloads")
		check(t, ReleaseUpdate(on, off))
	})
}

func TestClusters(t *testing.T) {
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint("k", i)] = ""
	}
	for name, c := range map[string]struct {
		change func(*corev1alpha1.Cluster)
		want   []string
	}{
		"the smallest one is good": {func(*corev1alpha1.Cluster) {}, nil},
		"metadata is free text":    {func(c *corev1alpha1.Cluster) { c.Spec.Metadata = map[string]string{"Site Name": "Zürich 1"} }, nil},
		"a name with a dot":        {func(c *corev1alpha1.Cluster) { c.Name = "edge.1" }, []string{"metadata.name"}},
		"too much metadata":        {func(c *corev1alpha1.Cluster) { c.Spec.Metadata = many }, []string{"spec.metadata"}},
		"an empty key":             {func(c *corev1alpha1.Cluster) { c.Spec.Metadata = map[string]string{"": "x"} }, []string{"spec.metadata"}},
		"a long key":               {func(c *corev1alpha1.Cluster) { c.Spec.Metadata = map[string]string{strings.Repeat("k", 254): "x"} }, []string{"spec.metadata[" + strings.Repeat("k", 254) + "]"}},
		"a long value":             {func(c *corev1alpha1.Cluster) { c.Spec.Metadata = map[string]string{"k": strings.Repeat("v", 1025)} }, []string{"spec.metadata[k]"}},
		"a mode that is none":      {func(c *corev1alpha1.Cluster) { c.Spec.ConnectionMode = "Agent" }, []string{"spec.connectionMode"}},
		"inCluster is good":        {func(c *corev1alpha1.Cluster) { c.Spec.ConnectionMode = "inCluster" }, nil},
		"agentless with a kubeconfig is good": {func(c *corev1alpha1.Cluster) {
			dialled(c).CAPublicCertRef = &corev1alpha1.SecretKeyReference{Name: "ca", Key: "ca.crt"}
		}, nil},
		"agentless of an unknown type is good: its status says Unsupported": {func(c *corev1alpha1.Cluster) {
			dialled(c).Auth = corev1alpha1.ClusterAuth{Type: "oidc"}
		}, nil},
		"agentless that does not say how": {func(c *corev1alpha1.Cluster) { c.Spec.ConnectionMode = "agentless" }, []string{"spec.agentless"}},
		"an agent with a way to dial": {func(c *corev1alpha1.Cluster) {
			dialled(c)
			c.Spec.ConnectionMode = "agent"
		}, []string{"spec.agentless"}},
		"inCluster with a way to dial": {func(c *corev1alpha1.Cluster) {
			dialled(c)
			c.Spec.ConnectionMode = "inCluster"
		}, []string{"spec.agentless"}},
		"agentless without a type":       {func(c *corev1alpha1.Cluster) { dialled(c).Auth = corev1alpha1.ClusterAuth{} }, []string{"spec.agentless.auth.type"}},
		"a kubeconfig that is not there": {func(c *corev1alpha1.Cluster) { dialled(c).Auth.Kubeconfig = nil }, []string{"spec.agentless.auth.kubeconfig"}},
		"a kubeconfig with another type": {func(c *corev1alpha1.Cluster) { dialled(c).Auth.Type = "oidc" }, []string{"spec.agentless.auth.kubeconfig"}},
		"a Secret without name and key": {func(c *corev1alpha1.Cluster) {
			dialled(c).Auth.Kubeconfig.SecretRef = corev1alpha1.SecretKeyReference{}
		}, []string{"spec.agentless.auth.kubeconfig.secretRef.name", "spec.agentless.auth.kubeconfig.secretRef.key"}},
		"a Secret and a key that are none": {func(c *corev1alpha1.Cluster) {
			dialled(c).CAPublicCertRef = &corev1alpha1.SecretKeyReference{Name: "A", Key: "a/b"}
		}, []string{"spec.agentless.caPublicCertRef.name", "spec.agentless.caPublicCertRef.key"}},
		"a server without TLS":      {func(c *corev1alpha1.Cluster) { dialled(c).Server = "http://edge:6443" }, []string{"spec.agentless.server"}},
		"a server with a path":      {func(c *corev1alpha1.Cluster) { dialled(c).Server = "https://edge:6443/k8s/clusters/c-1" }, []string{"spec.agentless.server"}},
		"a server with a password":  {func(c *corev1alpha1.Cluster) { dialled(c).Server = "https://a:b@edge:6443" }, []string{"spec.agentless.server"}},
		"a server that is too long": {func(c *corev1alpha1.Cluster) { dialled(c).Server = "https://" + strings.Repeat("a", 2048) }, []string{"spec.agentless.server"}},
		"a type of auth that is a book": {func(c *corev1alpha1.Cluster) {
			dialled(c).Auth = corev1alpha1.ClusterAuth{Type: strings.Repeat("a", 64)}
		}, []string{"spec.agentless.auth.type"}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := &corev1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}
			corev1alpha1.SetClusterDefaults(cl)
			c.change(cl)
			check(t, Cluster(cl), c.want...)
		})
	}
}

func TestGitRepositories(t *testing.T) {
	url := func(u string) func(*sourcev1alpha1.GitRepository) {
		return func(g *sourcev1alpha1.GitRepository) { g.Spec.URL = u }
	}
	ref := func(r sourcev1alpha1.GitRef) func(*sourcev1alpha1.GitRepository) {
		return func(g *sourcev1alpha1.GitRepository) { g.Spec.Ref = r }
	}
	for name, c := range map[string]struct {
		change func(*sourcev1alpha1.GitRepository)
		want   []string
	}{
		"https":                       {url("https://git.example:8443/team/app.git"), nil},
		"ssh with a user":             {url("ssh://git@git.example/team/app.git"), nil},
		"plain http":                  {url("http://127.0.0.1:3000/app"), nil},
		"no URL":                      {url(""), []string{"spec.url"}},
		"a user in https":             {url("https://me@git.example/app"), []string{"spec.url"}},
		"a password in ssh":           {url("ssh://git:pw@git.example/app"), []string{"spec.url"}},
		"git's own protocol":          {url("git://git.example/app"), []string{"spec.url"}},
		"a file":                      {url("file:///etc"), []string{"spec.url"}},
		"a path":                      {url("/srv/app.git"), []string{"spec.url"}},
		"the short form of ssh":       {url("git@git.example:team/app.git"), []string{"spec.url"}},
		"a helper program":            {url("ext::sh -c id"), []string{"spec.url"}},
		"no host":                     {url("https:///app"), []string{"spec.url"}},
		"no path":                     {url("https://git.example/"), []string{"spec.url"}},
		"a query":                     {url("https://git.example/app?token=x"), []string{"spec.url"}},
		"a fragment":                  {url("https://git.example/app#x"), []string{"spec.url"}},
		"a line break":                {url("https://git.example/a\nb"), []string{"spec.url"}},
		"a long URL":                  {url("https://git.example/" + strings.Repeat("a", 2048)), []string{"spec.url"}},
		"a tag":                       {ref(sourcev1alpha1.GitRef{Tag: "v1.2.3"}), nil},
		"a range":                     {ref(sourcev1alpha1.GitRef{Semver: ">=1.0.0 <2.0.0"}), nil},
		"a range that is none":        {ref(sourcev1alpha1.GitRef{Semver: "newest"}), []string{"spec.ref.semver"}},
		"a commit":                    {ref(sourcev1alpha1.GitRef{Commit: strings.Repeat("0a", 20)}), nil},
		"a short commit":              {ref(sourcev1alpha1.GitRef{Commit: "0a0a0a0"}), []string{"spec.ref.commit"}},
		"a branch with a space":       {ref(sourcev1alpha1.GitRef{Branch: "a b"}), []string{"spec.ref.branch"}},
		"a branch like an option":     {ref(sourcev1alpha1.GitRef{Branch: "-x"}), []string{"spec.ref.branch"}},
		"a branch and a tag":          {ref(sourcev1alpha1.GitRef{Branch: "main", Tag: "v1"}), []string{"spec.ref"}},
		"an interval of four seconds": {func(g *sourcev1alpha1.GitRepository) { g.Spec.Interval = &metav1.Duration{Duration: 4 * time.Second} }, []string{"spec.interval"}},
		"references without a name": {func(g *sourcev1alpha1.GitRepository) {
			g.Spec.SecretRef, g.Spec.CASecretRef = &sourcev1alpha1.SecretReference{}, &sourcev1alpha1.SecretReference{}
		}, []string{"spec.secretRef.name", "spec.caSecretRef.name"}},
		"a reference into another namespace": {func(g *sourcev1alpha1.GitRepository) {
			g.Spec.SecretRef = &sourcev1alpha1.SecretReference{Name: "other/secret"}
		}, []string{"spec.secretRef.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &sourcev1alpha1.GitRepository{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: sourcev1alpha1.GitRepositorySpec{URL: "https://git.example/app"}}
			sourcev1alpha1.SetGitRepositoryDefaults(g)
			c.change(g)
			check(t, GitRepository(g), c.want...)
		})
	}
}

func TestAnErrorNeverRepeatsCredentials(t *testing.T) {
	for _, u := range []string{
		"https://me:hunter2@git.example/app", "ssh://me:hunter2@git.example/app", "https://git.example/app?token=hunter2",
		"https://git.example/app#hunter2", "me:hunter2@git.example:app", "https://me:hunter2@git.example/%zz", "https://me:hunter2@/app", "ftp://me:hunter2@git.example/app",
	} {
		errs := gitURL(u, field.NewPath("spec", "url"))
		if len(errs) == 0 {
			t.Errorf("%s is accepted", u)
		}
		if strings.Contains(errs.ToAggregate().Error(), "hunter2") {
			t.Errorf("the error repeats the password: %v", errs)
		}
	}
}
