// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"net"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// writePKI makes the authorities of a plane, all that they sign, and the
// kubeconfigs.
func (p *Plane) writePKI(dir string) error {
	ca, err := newCA("convoy-test-ca")
	if err != nil {
		return err
	}
	proxyCA, err := newCA("convoy-test-front-proxy-ca")
	if err != nil {
		return err
	}
	server, err := ca.server(
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.IPv4(10, 96, 0, 1)})
	if err != nil {
		return err
	}
	proxy, err := proxyCA.client("front-proxy-client")
	if err != nil {
		return err
	}
	for name, c := range map[string]*pair{
		"ca": ca, "front-proxy-ca": proxyCA, "apiserver": server, "front-proxy-client": proxy,
	} {
		if err := c.write(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := writeSigner(filepath.Join(dir, "sa")); err != nil {
		return err
	}
	p.ca = ca

	for _, u := range []struct {
		file, user string
		groups     []string
	}{
		{"admin", AdminUser, []string{AdminGroup}},
		{string(ControllerManager), "system:kube-controller-manager", nil},
		{string(Scheduler), "system:kube-scheduler", nil},
		{string(Kwok), KwokUser, []string{AdminGroup}},
	} {
		cert, err := ca.client(u.user, u.groups...)
		if err != nil {
			return err
		}
		path := filepath.Join(p.dir, u.file+".kubeconfig")
		if err := clientcmd.WriteToFile(p.kubeconfig(cert), path); err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig()); err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	p.config.UserAgent = UserAgent
	p.config.QPS = -1 // API priority and fairness is on; a second limit hides it
	return nil
}

func (p *Plane) kubeconfig(cert *pair) api.Config {
	name := p.opts.Name
	return api.Config{
		Clusters: map[string]*api.Cluster{name: {
			Server: p.URL(), CertificateAuthorityData: p.ca.certPEM,
		}},
		AuthInfos: map[string]*api.AuthInfo{name: {
			ClientCertificateData: cert.certPEM, ClientKeyData: cert.keyPEM,
		}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

// configFor gives a rest.Config for any user and groups, as the plane's
// certificate authority would.
func (p *Plane) configFor(user string, groups ...string) (*rest.Config, error) {
	cert, err := p.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: p.URL(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: p.ca.certPEM, CertData: cert.certPEM, KeyData: cert.keyPEM,
		},
		UserAgent: UserAgent,
		QPS:       -1,
	}, nil
}

// UserConfig gives a rest.Config for a user in groups, authenticated by a
// client certificate. It has the rights that RBAC gives it and no others.
// The group system:masters is refused.
func (p *Plane) UserConfig(user string, groups ...string) (*rest.Config, error) {
	for _, g := range groups {
		if g == "system:masters" {
			return nil, fmt.Errorf("config for %s in %s: %w", user, g, ErrNotPermitted)
		}
	}
	return p.configFor(user, groups...)
}

// UserKubeconfig writes a kubeconfig as UserConfig gives a rest.Config, and
// returns its path in the plane's folder.
func (p *Plane) UserKubeconfig(user string, groups ...string) (string, error) {
	if _, err := p.UserConfig(user, groups...); err != nil {
		return "", err
	}
	cert, err := p.ca.client(user, groups...)
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.dir, "user-"+filepath.Base(user)+".kubeconfig")
	if err := clientcmd.WriteToFile(p.kubeconfig(cert), path); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return path, nil
}
