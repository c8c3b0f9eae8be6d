// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
)

func TestWithoutAHostOnlyHoldersOfACertificateGetIn(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	create(t, newClient(t, s), newRelease("team", "web", "edge"))
	with := func(groups ...string) *rest.Config { return s.Client(t, groups...) }
	nobody := rest.AnonymousClientConfig(with())
	guesser := rest.AnonymousClientConfig(with())
	guesser.BearerToken = "system:masters"
	const (
		list    = corePath + "/namespaces/team/releases"
		one     = list + "/web"
		release = `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"Release","metadata":{"name":"new"},"spec":{"clusterRef":{"name":"c"},"source":{"kind":"GitRepository","name":"s"}}}`
		sync    = `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"SyncRequest"}`
	)
	for name, c := range map[string]struct {
		who                *rest.Config
		method, path, body string
		code               int
	}{
		"nobody reads":                    {nobody, http.MethodGet, list, "", http.StatusUnauthorized},
		"nobody sees what is served":      {nobody, http.MethodGet, "/apis", "", http.StatusUnauthorized},
		"nobody sees metrics":             {nobody, http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		"nobody sees profiles":            {nobody, http.MethodGet, "/debug/pprof/", "", http.StatusUnauthorized},
		"a token is believed from nobody": {guesser, http.MethodGet, list, "", http.StatusUnauthorized},
		"an admin reads":                  {with(apiserver.GroupAdmin), http.MethodGet, list, "", http.StatusOK},
		"an admin writes":                 {with(apiserver.GroupAdmin), http.MethodPost, list, release, http.StatusCreated},
		"a viewer lists":                  {with(apiserver.GroupViewer), http.MethodGet, list, "", http.StatusOK},
		"a viewer gets":                   {with(apiserver.GroupViewer), http.MethodGet, one, "", http.StatusOK},
		"a viewer sees what is served":    {with(apiserver.GroupViewer), http.MethodGet, "/apis", "", http.StatusOK},
		"a viewer does not write":         {with(apiserver.GroupViewer), http.MethodPost, list, release, http.StatusForbidden},
		"a viewer does not delete":        {with(apiserver.GroupViewer), http.MethodDelete, one, "", http.StatusForbidden},
		"a viewer does not sync":          {with(apiserver.GroupViewer), http.MethodPost, one + "/sync", sync, http.StatusForbidden},
		"a certificate of no group of ours, as an agent has, is nobody's": {with("convoy:agent"), http.MethodGet, list, "", http.StatusUnauthorized},
		"a certificate cannot make its holder a master":                   {with("system:masters"), http.MethodGet, list, "", http.StatusUnauthorized},
		"a viewer does not see profiles":                                  {with(apiserver.GroupViewer), http.MethodGet, "/debug/pprof/", "", http.StatusForbidden},
		"Secrets are not served":                                          {with(apiserver.GroupAdmin), http.MethodGet, "/api/v1/namespaces/team/secrets", "", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if a := rawWith(t, c.who, s.URL(), c.method, c.path, c.body); a.code != c.code {
				t.Errorf("%d, want %d: %s", a.code, c.code, a.body)
			}
		})
	}
}

func TestWithoutAHostThereAreNoNamespacesToMake(t *testing.T) {
	// Namespaces are just a part of the name: nothing has to exist.
	t.Parallel()
	s := apiservertest.Start(t)
	create(t, newClient(t, s), newRelease("never-made", "web", "edge"))
}

func TestTheAdminKubeconfigWorksAndIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	path := filepath.Join(t.TempDir(), "admin.kubeconfig")
	if err := s.WriteAdminKubeconfig(path, s.Keyring.HubCA, s.Keyring.ServingCA.PEM); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o, want 0600", info.Mode().Perm())
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if a := rawWith(t, config, s.URL(), http.MethodGet, corePath+"/releases", ""); a.code != http.StatusOK {
		t.Errorf("%d %s", a.code, a.body)
	}
	if !strings.HasPrefix(s.URL(), "https://127.0.0.1:") {
		t.Errorf("listens at %s, want loopback", s.URL())
	}
}

func TestWithoutAHostADeletionDoesNotWaitForAGarbageCollector(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	create(t, newClient(t, s), newGitRepository("team", "app"))
	path := sourcePath + "/namespaces/team/gitrepositories/app"
	if a := raw(t, s, http.MethodDelete, path+"?propagationPolicy=Foreground", ""); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.body)
	}
	if a := raw(t, s, http.MethodGet, path, ""); a.code != http.StatusNotFound {
		t.Errorf("still there: %s", a.body)
	}
}
