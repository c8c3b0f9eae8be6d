// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// proxySchemes that a kubeconfig may name.
var proxySchemes = []string{"http", "https", "socks5"}

// fromKubeconfig makes a configuration of the current context of a kubeconfig. It
// runs in the hub, so nothing in it may start a program, read a file or send
// credentials to who cannot prove who they are.
func fromKubeconfig(raw []byte) (*rest.Config, error) {
	if len(raw) > maxKubeconfig {
		return nil, broken("the kubeconfig has %d bytes; at most %d are read", len(raw), maxKubeconfig)
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		// The parser's text may repeat a part of its input.
		return nil, broken("the kubeconfig cannot be read: it is not YAML or JSON of a kubeconfig") //nolint:nilerr // said above
	}
	if config.CurrentContext == "" {
		return nil, broken("the kubeconfig has no current-context")
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return nil, broken("the kubeconfig has no context %q, which is its current-context", config.CurrentContext)
	}
	cluster := config.Clusters[current.Cluster]
	if cluster == nil {
		return nil, broken("the kubeconfig has no cluster %q, which context %q names", current.Cluster, config.CurrentContext)
	}
	user := config.AuthInfos[current.AuthInfo]
	if user == nil {
		return nil, broken("the kubeconfig has no user %q, which context %q names", current.AuthInfo, config.CurrentContext)
	}
	server, err := checkCluster(current.Cluster, cluster)
	if err != nil {
		return nil, err
	}
	proxy, err := checkProxy(current.Cluster, cluster)
	if err != nil {
		return nil, err
	}
	if err := checkUser(current.AuthInfo, user); err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:        server.String(),
		BearerToken: user.Token,
		Username:    user.Username,
		Password:    user.Password,
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups, Extra: user.ImpersonateUserExtra,
		},
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData,
			CertData: user.ClientCertificateData, KeyData: user.ClientKeyData,
		},
		Proxy: proxy,
	}, nil
}

func checkCluster(name string, cluster *clientcmdapi.Cluster) (*url.URL, error) {
	field := fmt.Sprintf("clusters[%s].cluster.", name)
	switch {
	case cluster.CertificateAuthority != "":
		return nil, unsupported("the kubeconfig's %scertificate-authority names a file; it has to stand alone: use certificate-authority-data", field)
	case cluster.InsecureSkipTLSVerify:
		return nil, unsupported("the kubeconfig's %sinsecure-skip-tls-verify is refused: the credentials would go to whoever answers", field)
	case cluster.Server == "":
		return nil, broken("the kubeconfig's %sserver is empty", field)
	}
	server, err := url.Parse(cluster.Server)
	switch {
	case err != nil || server.Hostname() == "":
		return nil, broken("the kubeconfig's %sserver is no URL", field)
	case server.Scheme != "https":
		return nil, unsupported("the kubeconfig's %sserver has to be https", field)
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return nil, unsupported("the kubeconfig's %sserver may hold scheme, host, port and path only", field)
	}
	return server, nil
}

// checkProxy gives the proxy of a kubeconfig, or none: the hub's own environment
// says nothing about other clusters.
func checkProxy(name string, cluster *clientcmdapi.Cluster) (func(*http.Request) (*url.URL, error), error) {
	if cluster.ProxyURL == "" {
		return func(*http.Request) (*url.URL, error) { return nil, nil }, nil
	}
	proxy, err := url.Parse(cluster.ProxyURL)
	if err != nil || !slices.Contains(proxySchemes, proxy.Scheme) || proxy.Hostname() == "" {
		return nil, unsupported("the kubeconfig's clusters[%s].cluster.proxy-url has to be an http, https or socks5 URL with a host", name)
	}
	return http.ProxyURL(proxy), nil
}

func checkUser(name string, user *clientcmdapi.AuthInfo) error {
	field := fmt.Sprintf("users[%s].user.", name)
	switch {
	case user.Exec != nil:
		return unsupported("the kubeconfig's %sexec is refused: the hub runs no credential plugins; use a token or a client certificate", field)
	case user.AuthProvider != nil:
		return unsupported("the kubeconfig's %sauth-provider is refused: the hub runs no credential plugins; use a token or a client certificate", field)
	case user.ClientCertificate != "":
		return unsupported("the kubeconfig's %sclient-certificate names a file; it has to stand alone: use client-certificate-data", field)
	case user.ClientKey != "":
		return unsupported("the kubeconfig's %sclient-key names a file; it has to stand alone: use client-key-data", field)
	case user.TokenFile != "":
		return unsupported("the kubeconfig's %stokenFile names a file; it has to stand alone: use token", field)
	case (len(user.ClientCertificateData) > 0) != (len(user.ClientKeyData) > 0):
		return broken("the kubeconfig's %sclient-certificate-data and client-key-data go together", field)
	case user.Token == "" && user.Username == "" && len(user.ClientCertificateData) == 0:
		return broken("the kubeconfig's user %q has no credentials: token, client-certificate-data or username", name)
	case user.Token != "" && user.Username != "":
		return broken("the kubeconfig's user %q has a token and a username; only one can be used", name)
	}
	return nil
}
