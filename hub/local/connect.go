// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"k8s.io/client-go/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Deployer is the ServiceAccount that the hub acts as on the cluster it runs in:
// namespace and name. Its own account has no rights there beyond the hub's work.
const (
	DeployerNamespace = "convoy-system"
	DeployerName      = "convoy-deployer"
)

// userAgent of all calls to targets.
const userAgent = "convoy-hub-engine"

// connection is a way to one target.
type connection struct {
	config *rest.Config
	// hash tells connections apart that were made of different things.
	hash  [sha256.Size]byte
	close func()
}

// credentials are what a connection is made of.
type credentials struct {
	mode       v1alpha1.ConnectionMode
	kubeconfig []byte
}

func (c credentials) hash() [sha256.Size]byte {
	return sha256.Sum256(append([]byte(string(c.mode)+"\n"), c.kubeconfig...))
}

// credentials of a Cluster as they are now. An error that is no fault says nothing
// about the Cluster: the host was not reached.
func (m *Manager) credentials(ctx context.Context, cluster *v1alpha1.Cluster) (credentials, error) {
	found := credentials{mode: cluster.Spec.ConnectionMode}
	switch {
	case found.mode == v1alpha1.ConnectionModeInCluster && m.opts.Host == nil:
		return found, unsupported("the hub runs in no cluster: it was started with --standalone")
	case found.mode == v1alpha1.ConnectionModeInCluster:
		return found, nil
	case cluster.Spec.Agentless == nil:
		return found, unsupported("spec.agentless is missing")
	}
	auth := cluster.Spec.Agentless.Auth
	if auth.Type != v1alpha1.AuthTypeKubeconfig || auth.Kubeconfig == nil {
		return found, unsupported("spec.agentless.auth.type %q is not built; use %q", clipWord(auth.Type), v1alpha1.AuthTypeKubeconfig)
	}
	ref := auth.Kubeconfig.SecretRef
	if !slices.Contains(cluster.Status.CheckedSecrets, ref.Name) {
		f := broken("whether Secret %q may be used was never checked: update the Cluster as a user who may get that Secret", ref.Name)
		f.again = false
		return found, f
	}
	data, err := m.opts.Secrets.GetSecret(ctx, cluster.Namespace, ref.Name)
	switch {
	case errors.Is(err, ErrNoHost):
		return found, unsupported("a kubeconfig lies in a Secret of the host cluster, and this hub has none: it was started with --standalone")
	case errors.Is(err, ErrNoSecret):
		return found, broken("Secret %q does not exist", ref.Name)
	case err != nil:
		return found, fmt.Errorf("read Secret %s: %w", ref.Name, err)
	}
	raw, ok := data[ref.Key]
	if !ok || len(raw) == 0 {
		return found, broken("Secret %q has no key %q", ref.Name, ref.Key)
	}
	found.kubeconfig = raw
	return found, nil
}

// connect makes a connection. It dials nothing. suspect is called when a call
// fails on the way, or finds its credentials refused.
func (m *Manager) connect(c credentials, suspect func()) (*connection, error) {
	var config *rest.Config
	if c.mode == v1alpha1.ConnectionModeInCluster {
		config = rest.CopyConfig(m.opts.Host)
		config.UserAgent, config.QPS = userAgent, -1
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + DeployerNamespace + ":" + DeployerName}
		config.Wrap(m.around(suspect))
		return &connection{config: config, hash: c.hash(), close: func() {}}, nil
	}
	config, err := fromKubeconfig(c.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, broken("the kubeconfig's certificates cannot be used: %s", clip(err.Error()))
	}
	base := &http.Transport{
		Proxy: config.Proxy, TLSClientConfig: secure, TLSHandshakeTimeout: tlsTimeout, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTimeout, DisableCompression: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	base.DialContext = m.opts.Dial
	if base.DialContext == nil {
		base.DialContext = (&net.Dialer{Timeout: tlsTimeout}).DialContext
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, m.around(suspect)(base))
	if err != nil {
		return nil, broken("the kubeconfig's credentials cannot be used: they contradict each other")
	}
	return &connection{
		config: &rest.Config{Host: config.Host, Transport: wrapped}, hash: c.hash(), close: base.CloseIdleConnections,
	}, nil
}

// around follows no redirect, since the credentials would go with it, and tells of
// calls that fail.
func (m *Manager) around(suspect func()) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		if m.opts.Wrap != nil {
			next = m.opts.Wrap(next)
		}
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(req)
			switch {
			case err != nil:
				if req.Context().Err() == nil {
					suspect()
				}
				return nil, err
			case res.StatusCode == http.StatusUnauthorized:
				suspect()
			case res.StatusCode >= http.StatusMultipleChoices && res.StatusCode < http.StatusBadRequest && res.StatusCode != http.StatusNotModified:
				return nil, errors.Join(errRedirected, res.Body.Close())
			}
			return res, nil
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func clipWord(s string) string { return s[:min(len(s), maxWord)] }
