// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kumodo.io/convoy/hub/apiserver"
)

// Namespace is where the hub lives in its host cluster.
const Namespace = "convoy-system"

// Requests to the host cluster in one second, and at once. The hub writes its own
// objects in process; what is left are Secrets, Leases and Events.
const (
	hostQPS   = 50
	hostBurst = 100
)

// Config is what the hub's parts are made from.
type Config struct {
	// API are the options of the API server. With an embedded etcd, its endpoint
	// has to be put into API.Etcd.StorageConfig.Transport.ServerList once it runs.
	API *apiserver.Options
	// Host reaches the host cluster; nil with --standalone.
	Host *rest.Config
	// Standalone: there is no host cluster.
	Standalone bool

	// EtcdDir is the embedded etcd's directory; empty with --etcd-servers.
	EtcdDir string
	// KeyDir holds the keys of a standalone hub; empty with a host cluster.
	KeyDir string
	// StoreDir holds the renders, and SourceDir what was fetched.
	StoreDir, SourceDir string
	// AdminKubeconfig is written by a standalone hub; empty with a host cluster.
	AdminKubeconfig string
	// SecretsDir stands in for Secrets in standalone tests, or is empty.
	SecretsDir string

	Gateway     Gateway
	Observer    Observer
	AgentImage  string
	MetricsAddr string
	// WebhookAddr is where sources tell of changes; empty: nowhere.
	WebhookAddr string
	LogJSON     bool
	Verbosity   int
	// SourceAllow and ClusterAllow are ranges opened for sources, and for Clusters
	// that the hub dials.
	SourceAllow, ClusterAllow []netip.Prefix
	Resync                    time.Duration
	// StoreSweep is how often unused renders are collected; 0: never.
	StoreSweep time.Duration
	// RenderStore says where renders are, if not in StoreDir, which then only takes
	// what is being written.
	RenderStore RenderStore
}

// Gateway is where agents dial in.
type Gateway struct {
	Addr  string
	Plain bool
	URL   string
	// Drain is how long an ordered end waits for agents to go.
	Drain time.Duration
}

// Observer answers the API server about what is not stored.
type Observer struct {
	// Addr to listen on; empty: there is no observer in this process.
	Addr string
	// URL that the API server asks; empty: none.
	URL string
	// Own: the URL is that of Addr, whatever port it gets.
	Own bool
}

// Completed are options with everything filled in that was left out. Only
// Complete makes one.
type Completed struct {
	*completed
}

type completed struct {
	Options
	allow, clusterAllow []netip.Prefix
	ownObserver         bool

	errs []error
}

// Complete fills in what follows from other flags.
func (o *Options) Complete() Completed {
	c := &completed{Options: *o}
	if o.API.Standalone && len(o.API.Etcd.StorageConfig.Transport.ServerList) == 0 {
		c.EmbeddedEtcd = true
	}
	if c.API.SecureServing.BindAddress == nil && c.API.SecureServing.Listener == nil {
		c.API.SecureServing.BindAddress = net.IPv4zero
		if o.API.Standalone {
			c.API.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
		}
	}
	if c.GatewayURL == "" {
		c.GatewayURL = DefaultGatewayURL
		if o.API.Standalone {
			c.GatewayURL = loopbackURL(c.GatewayAddr, c.GatewayPlain)
		}
	}
	if o.API.Standalone {
		c.completeObserver()
	}
	c.allow = c.ranges("--source-allow-cidr", o.SourceAllowCIDR)
	c.clusterAllow = c.ranges("--cluster-allow-cidr", o.ClusterAllowCIDR)
	if !o.API.Standalone {
		c.API.UseKubeconfig(c.Kubeconfig)
	}
	return Completed{c}
}

// completeObserver keeps a hub without a host on loopback, several of them beside each
// other, and has it ask itself.
func (c *completed) completeObserver() {
	if c.ServeAddr == DefaultServeAddr {
		c.ServeAddr = "127.0.0.1:0"
	}
	if c.ObserverURL == DefaultObserverURL {
		c.ObserverURL, c.ownObserver = "", c.ServeAddr != ""
	}
}

// ranges reads the value of a flag.
func (c *completed) ranges(flag string, texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			c.errs = append(c.errs, fmt.Errorf("%s %q: %w: %w", flag, text, ErrInvalid, err))
			continue
		}
		out = append(out, prefix.Masked())
	}
	return out
}

// Validate says what is wrong, all of it.
func (c Completed) Validate() []error {
	errs := append([]error(nil), c.errs...)
	add := func(wrong bool, err error) {
		if wrong {
			errs = append(errs, err)
		}
	}
	external := len(c.API.Etcd.StorageConfig.Transport.ServerList) > 0
	add(!external && !c.EmbeddedEtcd, ErrNoEtcd)
	add(external && c.EmbeddedEtcd, ErrTwoEtcds)
	add(c.DataDir == "", ErrNoDataDir)
	add(c.Roles != RolesAll, ErrRoles)
	add(c.StandaloneSecretsDir != "" && !c.API.Standalone, fmt.Errorf("--standalone-secrets-dir %w", ErrStandaloneOnly))
	add(c.Kubeconfig != "" && c.API.Standalone, fmt.Errorf("--kubeconfig %w", ErrStandalone))
	add(c.Resync < minResync, fmt.Errorf("--resync %s: %w: at least %s", c.Resync, ErrInvalid, minResync))
	add(c.StoreSweep != 0 && c.StoreSweep < minStoreSweep, fmt.Errorf("--store-gc-interval %s: %w: 0, or at least %s", c.StoreSweep, ErrInvalid, minStoreSweep))
	add(c.LogFormat != LogText && c.LogFormat != LogJSON, fmt.Errorf("--log-format %q: %w: text or json", c.LogFormat, ErrInvalid))
	add(c.Verbosity < 0, fmt.Errorf("--v %d: %w", c.Verbosity, ErrInvalid))
	if err := address(c.GatewayAddr); err != nil {
		errs = append(errs, fmt.Errorf("--gateway-addr: %w", err))
	}
	if c.MetricsAddr != "" {
		if err := address(c.MetricsAddr); err != nil {
			errs = append(errs, fmt.Errorf("--metrics-addr: %w", err))
		}
	}
	if c.WebhookAddr != "" {
		if err := address(c.WebhookAddr); err != nil {
			errs = append(errs, fmt.Errorf("--webhook-addr: %w", err))
		}
	}
	if c.ServeAddr != "" {
		if err := address(c.ServeAddr); err != nil {
			errs = append(errs, fmt.Errorf("--serve-addr: %w", err))
		}
	}
	if c.ObserverURL != "" {
		if err := observerURL(c.ObserverURL); err != nil {
			errs = append(errs, fmt.Errorf("--observer-url: %w", err))
		}
	}
	add(c.GatewayDrain < 0, fmt.Errorf("--gateway-drain-timeout %s: %w: less than none", c.GatewayDrain, ErrInvalid))
	if err := gatewayURL(c.GatewayURL); err != nil {
		errs = append(errs, fmt.Errorf("--gateway-url: %w", err))
	}
	errs = append(errs, c.RenderStore.validate()...)
	return append(errs, c.API.Validate()...)
}

// Config makes the configuration. The options must have been validated.
func (c Completed) Config() (*Config, error) {
	out := &Config{
		API:         c.API,
		Standalone:  c.API.Standalone,
		StoreDir:    filepath.Join(c.DataDir, "renders"),
		SourceDir:   filepath.Join(c.DataDir, "sources"),
		SecretsDir:  c.StandaloneSecretsDir,
		Gateway:     Gateway{Addr: c.GatewayAddr, Plain: c.GatewayPlain, URL: c.GatewayURL, Drain: c.GatewayDrain},
		Observer:    Observer{Addr: c.ServeAddr, URL: c.ObserverURL, Own: c.ownObserver},
		AgentImage:  c.AgentImage,
		MetricsAddr: c.MetricsAddr,
		WebhookAddr: c.WebhookAddr,
		LogJSON:     c.LogFormat == LogJSON,
		Verbosity:   c.Verbosity,
		SourceAllow: c.allow, ClusterAllow: c.clusterAllow,
		Resync: c.Resync, StoreSweep: c.StoreSweep, RenderStore: c.RenderStore,
	}
	if c.EmbeddedEtcd {
		out.EtcdDir = filepath.Join(c.DataDir, "etcd")
	}
	if c.API.Standalone {
		out.KeyDir = filepath.Join(c.DataDir, "keys")
		out.AdminKubeconfig = filepath.Join(c.DataDir, "admin.kubeconfig")
		return out, nil
	}
	host, err := hostConfig(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	out.Host = host
	return out, nil
}

// hostConfig reads the kubeconfig, or what a pod finds in its file system.
func hostConfig(path string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if path == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHost, err)
	}
	config.QPS, config.Burst = hostQPS, hostBurst
	config.UserAgent = "convoy-hub"
	return config, nil
}

func address(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil || port == "" {
		return fmt.Errorf("%w: %q, must be host:port or :port", ErrInvalid, text)
	}
	return nil
}

func gatewayURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Scheme != "wss" && u.Scheme != "ws") {
		return fmt.Errorf("%w: %q, must be like wss://convoy.example:443", ErrInvalid, text)
	}
	return nil
}

// observerURL refuses what would not be asked in the form that is signed. Client
// certificates, and with them https, are not built.
func observerURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%w: %q, must be like %s", ErrInvalid, text, DefaultObserverURL)
	}
	return nil
}

// loopbackURL is how this machine reaches the gateway.
func loopbackURL(addr string, plain bool) string {
	scheme := "wss"
	if plain {
		scheme = "ws"
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "" // refused by Validate, as the address is
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
